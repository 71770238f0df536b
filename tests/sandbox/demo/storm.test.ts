import { describe, expect, it } from "vitest";
import { makeStorm } from "@/sandbox/demo/make-storm";
import { emptyTally, replayStorm } from "@/sandbox/demo/replay-storm";
import { accountsOf, readStorm, type StormPost } from "@/sandbox/demo/storm";
import { signWebhook } from "@/sandbox/snaptrade/sign-webhook";

const OPTIONS = { seed: 1, accounts: 300, events: 2_000, lengthMs: 45_000, clientId: "CLIENT", consumerKey: "key" };
const storm = makeStorm({ ...OPTIONS, startMs: 0 });
const idOf = ({ body }: StormPost) => String(JSON.parse(body).webhookId ?? JSON.parse(body).webookId);

describe("the made storm", () => {
  it("is the same for the same seed, and signed", () => {
    expect(makeStorm({ ...OPTIONS, startMs: 0 })).toEqual(storm);
    expect(makeStorm({ ...OPTIONS, seed: 2, startMs: 0 })).not.toEqual(storm);
    expect(storm.filter(({ body, signature }) => signWebhook(body, "key") !== signature)).toEqual([]);
  });

  it("brings a few thousand events for a few hundred accounts in under a minute, in order", () => {
    expect(storm.length).toBeGreaterThan(3_000);
    expect(new Set(storm.map(idOf)).size).toBe(OPTIONS.events);
    expect(new Set(storm.flatMap(({ change }) => change?.accountId ?? [])).size).toBeGreaterThan(250);
    expect(storm.at(-1)?.atMs).toBeLessThan(60_000);
    expect(storm.map(({ atMs }) => atMs)).toEqual(storm.map(({ atMs }) => atMs).sort((a, b) => a - b));
  });

  it("has both spellings of the id, both wire forms, and redeliveries of the very same bytes", () => {
    const share = (has: (post: StormPost) => boolean) => storm.filter(has).length / storm.length;
    expect(share(({ body }) => body.includes('"webookId"'))).toBeGreaterThan(0.05);
    expect(share(({ body }) => body.includes('": "'))).toBeGreaterThan(0.4);
    expect(share(({ change }) => change === null)).toBeGreaterThan(0.4);
    expect(new Set(storm.map(({ body }) => body)).size).toBe(OPTIONS.events);
  });
});

describe("a storm's upstream changes", () => {
  it("come with the first copy of an account event only", async () => {
    const recorded = await readStorm("tests/fixtures/storm.jsonl.gz");
    const changing = recorded.filter(({ change }) => change !== null);
    expect(new Set(changing.map(idOf)).size).toBe(changing.length);
    const events = recorded.filter(({ body }) => JSON.parse(body).accountId !== undefined);
    expect(changing.length).toBe(new Set(events.map(idOf)).size);
    expect(accountsOf(recorded, 1)).toBe(300);
  });

  it("happen before the post, which is sent again until it is answered where that is asked for", async () => {
    const seen: string[] = [];
    const answers = [
      { status: 0, outcome: null },
      { status: 503, outcome: null },
      { status: 200, outcome: "accepted" },
      { status: 200, outcome: "duplicate" },
    ];
    const change = { accountId: "acct-0000", workTypes: ["holdings"] as const };
    const post = { atMs: 0, body: "{}", signature: "" };
    const tally = emptyTally();
    await replayStorm(
      [
        { ...post, change },
        { ...post, atMs: 1_000, change: null },
      ],
      {
        speed: 1,
        sendAgain: true,
        stopped: () => false,
        change: (accountId, workType) => void seen.push(`${accountId} ${workType}`),
        post: async () => {
          seen.push("post");
          return answers.shift() ?? { status: 500, outcome: null };
        },
      },
      tally,
    );
    expect(seen).toEqual(["acct-0000 holdings", "post", "post", "post", "post"]);
    expect(tally).toMatchObject({ sent: 2, accepted: 1, duplicate: 1, non200: 0 });
  });

  it("count an event that was not answered 200 where nothing is sent again", async () => {
    const tally = emptyTally();
    const post = async () => ({ status: 503, outcome: null });
    const events = [{ atMs: 0, body: "{}", signature: "", change: null }];
    await replayStorm(events, { speed: 1, sendAgain: false, stopped: () => false, change: () => {}, post }, tally);
    expect(tally).toMatchObject({ sent: 1, non200: 1 });
  });
});
