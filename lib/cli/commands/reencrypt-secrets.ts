import type { Report, Tools } from "@/lib/cli/report";
import { counted } from "@/lib/cli/text";
import { encryptSecret, openSecret } from "@/lib/secrets";
import type { Service } from "@/lib/service";
import type { StoredSecret } from "@/lib/store/answers";

/** Secrets in one SQL call. */
const PAGE = 200;

/** `unreadable`: the users whose secret opens with none of the keys. */
type Outcome = { rewritten: number; upToDate: number; unreadable: string[] };

/**
 * Writes every stored secret under the first key of `SNAPTRADE_SECRETS_KEY`, so that the other keys can go. A secret that
 * somebody stores meanwhile stands. Repeating it is harmless.
 */
export async function reencryptSecrets({ service, terminal }: Tools): Promise<Report> {
  const outcome: Outcome = { rewritten: 0, upToDate: 0, unreadable: [] };
  let after: string | undefined;
  for (;;) {
    const { users } = await service.store.listSecrets({ limit: PAGE, ...(after === undefined ? {} : { after }) });
    const last = users.at(-1);
    if (last === undefined) return report(outcome);
    for (let page = users; page.length > 0; ) page = await rewritePage(service, page, outcome);
    after = last.userId;
    if (users.length === PAGE) terminal.note(`up to ${after}: ${outcome.rewritten} rewritten so far`);
  }
}

/** Answers the secrets that were changed by somebody else meanwhile: they are to be looked at again. */
async function rewritePage(service: Service, page: StoredSecret[], outcome: Outcome): Promise<StoredSecret[]> {
  const keys = service.env.snaptrade.secretsKeys;
  const items: { userId: string; from: string; to: string }[] = [];
  for (const { userId, secretCiphertext: from } of page) {
    const plain = openSecret(from, keys, userId);
    if (plain === null) outcome.unreadable.push(userId);
    else if (openSecret(from, keys.slice(0, 1), userId) !== null) outcome.upToDate += 1;
    else items.push({ userId, from, to: encryptSecret(plain, keys, userId) });
  }
  if (items.length === 0) return [];
  const { replaced, changed } = await service.store.replaceSecrets({ items });
  outcome.rewritten += replaced;
  return changed;
}

function report(outcome: Outcome): Report {
  const { rewritten, upToDate, unreadable } = outcome;
  const done = `${counted(rewritten, "secret")} rewritten under the first key of SNAPTRADE_SECRETS_KEY, ${upToDate} were under it already.`;
  if (unreadable.length === 0) {
    return { exit: 0, document: outcome, text: `${done}\nNo other key is needed any more.` };
  }
  const lost = unreadable.map((userId) => `${userId}: its secret opens with none of the keys`);
  const advice = "Put the key that is missing back behind the others and repeat the command, or add these users again.";
  return { exit: 1, document: outcome, text: [done, ...lost, advice].join("\n") };
}
