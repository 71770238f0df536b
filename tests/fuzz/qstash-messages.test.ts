import fc from "fast-check";
import { expect, test } from "vitest";
import { receiveSweepPage } from "@/lib/http/receive-cron";
import { type Handler, handled } from "@/lib/http/route";
import { FAILURE_PATH, SWEEP_PATH, workerPath } from "@/lib/jobs/publisher";
import { receiveDelivery } from "@/lib/jobs/receive-delivery";
import { receiveFailedMessage } from "@/lib/jobs/receive-failed-message";
import { Signer } from "@/sandbox/qstash/signer";
import { APP_URL, countingService, SIGNING_KEYS } from "@/tests/fuzz/counting-service";
import { hostileHeaders, hostileValue } from "@/tests/fuzz/hostile";
import { fuzzRuns } from "@/tests/fuzz/runs";
import { jsonObjectText } from "@/tests/unit/webhook/arbitrary-json";

/** Ports that know no job: a message that reaches them is overtaken, its sweep replaced. */
const { service, calls, lines, reset } = countingService({
  guards: {
    claimAccountLock: async () => ({ kind: "go", calls: 3, limit: 250, reserved: false, slotAt: 0 }),
    releaseAccountLock: async () => [],
    findSlots: async () => [],
  },
  store: {
    begin: async () => ({ outcome: "unknown" as const }),
    republishFailed: async () => ({ outcome: "overtaken" as const }),
    listStale: async () => ({ current: false as const }),
  },
});

const ROUTES: Record<string, Handler> = {
  [workerPath("holdings")]: (s, request) => receiveDelivery(s, "holdings", request),
  [workerPath("transactions")]: (s, request) => receiveDelivery(s, "transactions", request),
  [FAILURE_PATH]: receiveFailedMessage,
  [SWEEP_PATH]: receiveSweepPage,
};
const right = new Signer(SIGNING_KEYS);
const another = new Signer({ current: "sig_another", next: "sig_another" });

const wholeNumber = fc.oneof(
  { weight: 2, arbitrary: fc.constant(1) },
  { weight: 3, arbitrary: fc.constantFrom(0, -1, 1.5, 2 ** 31 - 1, 2 ** 31, 2 ** 53 - 1, 1e308) },
  { weight: 1, arbitrary: hostileValue },
);
const workType = fc.oneof({ weight: 8, arbitrary: fc.constantFrom("holdings", "transactions") }, hostileValue);
const id = fc.oneof({ weight: 6, arbitrary: fc.constant("acct-1") }, hostileValue);
const job = fc
  .record(
    {
      jobId: fc.oneof({ weight: 8, arbitrary: fc.uuid() }, hostileValue),
      workType,
      accountId: id,
      delivery: wholeNumber,
      ["__proto__"]: hostileValue,
    },
    { requiredKeys: ["jobId", "workType", "accountId", "delivery"], noNullPrototype: false },
  )
  .map((fields) => JSON.stringify(fields));
const time = fc.oneof(
  fc.constantFrom("-infinity", "2026-09-01T12:00:00.123456+00:00", "0000-01-01T00:00:00Z", "infinity", "now"),
  hostileValue,
);
const page = fc
  .record({
    sweepId: fc.oneof({ weight: 3, arbitrary: fc.uuid() }, hostileValue),
    page: fc.oneof({ weight: 3, arbitrary: fc.constant(0) }, wholeNumber),
    cursor: fc.oneof(fc.constant(null), fc.record({ workType, attempted: time, accountId: id }), hostileValue),
  })
  .map((fields) => JSON.stringify(fields));
const callback = fc
  .record({
    sourceBody: fc.oneof(
      { weight: 4, arbitrary: job.map((text) => Buffer.from(text).toString("base64")) },
      fc.base64String(),
      hostileValue,
    ),
    status: fc.oneof(fc.constant(503), hostileValue),
    dlqId: hostileValue,
  })
  .map((fields) => JSON.stringify(fields));
const nested = fc.nat({ max: 20_000 }).map((depth) => `{"sourceBody":${"[".repeat(depth)}${"]".repeat(depth)}}`);

const bytesOf = (text: fc.Arbitrary<string>) => text.map((given) => Buffer.from(given));
const WORKERS = [workerPath("holdings"), workerPath("transactions")];
/** What each route expects, or nearly; the rest is anything anywhere. */
const routed = fc.oneof(
  { weight: 6, arbitrary: fc.record({ path: fc.constantFrom(...WORKERS), body: bytesOf(job) }) },
  { weight: 3, arbitrary: fc.record({ path: fc.constant(SWEEP_PATH), body: bytesOf(page) }) },
  { weight: 3, arbitrary: fc.record({ path: fc.constant(FAILURE_PATH), body: bytesOf(callback) }) },
  {
    weight: 4,
    arbitrary: fc.record({
      path: fc.constantFrom(...Object.keys(ROUTES)),
      body: fc.oneof(
        bytesOf(fc.oneof(job, page, callback, jsonObjectText(), fc.json(), nested)),
        fc.uint8Array({ maxLength: 300 }).map((bytes) => Buffer.from(bytes)),
      ),
    }),
  },
);

const message = fc.record({
  routed,
  headers: hostileHeaders,
  signature: fc.oneof(
    { weight: 20, arbitrary: fc.constantFrom("current", "next") },
    fc.constantFrom("none", "another key's", "another body's", "cut"),
    fc.base64String(),
  ),
});
type Sent = typeof message extends fc.Arbitrary<infer T> ? T : never;

async function signatureOf({ routed: { path, body }, signature }: Sent): Promise<string | null> {
  const url = `${APP_URL}${path}`;
  const signed = { url, body, key: "current" as const, skewSeconds: 0 };
  switch (signature) {
    case "current":
    case "next":
      return right.sign({ ...signed, key: signature });
    case "none":
      return null;
    case "another key's":
      return another.sign(signed);
    case "another body's":
      return right.sign({ ...signed, body: Buffer.concat([body, Buffer.from(" ")]) });
    case "cut":
      return (await right.sign(signed)).slice(0, -2);
    default:
      return signature;
  }
}

const UUID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i;
const ID = /^[A-Za-z0-9_.-]{1,128}$/;
const isRecord = (value: unknown): value is Record<string, unknown> => typeof value === "object" && value !== null;
const isText = (value: unknown, form: RegExp) => typeof value === "string" && form.test(value);
const isWorkType = (value: unknown) => value === "holdings" || value === "transactions";

/** Whether a body may reach the ports of its route: told without the code under test, and not narrower than what is documented. */
function mayTouch(path: string, text: string): boolean {
  const value = jsonIn(text);
  if (!isRecord(value)) return false;
  if (path === SWEEP_PATH) {
    const { sweepId, cursor } = value;
    const isCursor = isRecord(cursor) && isWorkType(cursor.workType) && isText(cursor.accountId, ID);
    const isTime = isRecord(cursor) && isText(cursor.attempted, /^(-infinity|\s*[0-9]{4}-.*)$/);
    return isText(sweepId, ID) && Number.isSafeInteger(value.page) && (cursor === null || (isCursor && isTime));
  }
  if (path === FAILURE_PATH) {
    const source = typeof value.sourceBody === "string" ? Buffer.from(value.sourceBody, "base64").toString("utf8") : "";
    return isJob(jsonIn(source));
  }
  return isJob(value) && workerPath(value.workType === "holdings" ? "holdings" : "transactions") === path;
}

function isJob(value: unknown): value is Record<string, unknown> {
  if (!isRecord(value)) return false;
  const { jobId, workType, accountId, delivery } = value;
  const isDelivery = typeof delivery === "number" && Number.isInteger(delivery) && delivery > 0 && delivery < 2 ** 31;
  return isText(jobId, UUID) && isWorkType(workType) && isText(accountId, ID) && isDelivery;
}

function jsonIn(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

test("whatever QStash carries: 401 unsigned, else 200 or 489; only a message of ours touches anything (I9)", async () => {
  let touched = 0;
  await fc.assert(
    fc.asyncProperty(message, async (sent) => {
      reset();
      const { path, body } = sent.routed;
      const headers = new Headers();
      for (const [name, value] of sent.headers) headers.append(name, value);
      headers.delete("upstash-signature");
      const signature = await signatureOf(sent);
      if (signature !== null) headers.set("upstash-signature", signature);
      const request = new Request(`http://10.0.0.1${path}`, { method: "POST", headers, body: new Uint8Array(body) });
      const response = await handled(service, ROUTES[path] ?? receiveSweepPage, request);

      const isSigned = sent.signature === "current" || sent.signature === "next";
      const isText = Buffer.from(body.toString("utf8")).equals(body);
      const tooLarge = Number(headers.get("content-length")) > 1024 * 1024;
      expect(isSigned && isText && !tooLarge ? [200, 489] : [401]).toContain(response.status);
      if (response.status === 489) expect(response.headers.get("upstash-nonretryable-error")).toBe("true");
      if (calls.length > 0) {
        touched += 1;
        expect(response.status).toBe(200);
        expect(mayTouch(path, body.toString("utf8"))).toBe(true);
      }
      const faults = lines.filter((line) =>
        /"msg":"(Unexpected fault|Delivery failed|Failure callback failed)"/.test(line),
      );
      expect(faults).toEqual([]);
      for (const line of lines) expect(line.indexOf("\n")).toBe(line.length - 1);
    }),
    fuzzRuns(400, 0.3),
  );
  expect(touched, "messages that were ours").toBeGreaterThan(0);
}, 600_000);
