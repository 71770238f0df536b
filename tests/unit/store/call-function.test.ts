import type { ServerResponse } from "node:http";
import { afterEach, expect, test } from "vitest";
import { z } from "zod";
import { createFunctionCaller, StoreError } from "@/lib/store/call-function";
import { type FakeServer, sendJson, startFakeServer } from "@/tests/unit/provider/fake-server";

/** No error of Postgres is a value that somebody could forget to look at: each is thrown, and no call is sent twice. */
let server: FakeServer | undefined;
afterEach(async () => {
  await server?.close();
  server = undefined;
});

type Reply = (response: ServerResponse) => void;
const answer = z.object({ outcome: z.string() });

/** What one call comes to, and how often it was sent. */
async function call(reply: Reply, timeoutMs = 5_000) {
  server = await startFakeServer((_, response) => reply(response));
  const callFunction = createFunctionCaller({ url: server.url, secretKey: "sb_secret_marker", timeoutMs });
  const came: unknown = await callFunction("snaptrade_begin_job", { jobId: "7" }, answer).catch((error) => error);
  return { came, sent: server.requests.length };
}

const says =
  (body: unknown, status = 200): Reply =>
  (response) =>
    sendJson(response, status, JSON.stringify(body));

test("an answer of the right shape is the answer", async () => {
  expect(await call(says({ outcome: "done" }))).toEqual({ came: { outcome: "done" }, sent: 1 });
});

// B70
test.each([
  ["23505", 409, false],
  ["23503", 409, false],
  ["42501", 403, false],
  ["42P10", 400, false],
  ["22P02", 400, false],
  ["PGRST116", 406, false],
  ["PGRST202", 404, false],
  ["57014", 500, true],
  ["53300", 503, true],
  ["40001", 500, true],
  ["08006", 503, true],
  ["PGRST002", 503, true],
])("the error %s is thrown, and whether Postgres may have been away is told: %i, %s", async (code, status, away) => {
  const { came, sent } = await call(says({ code, message: "refused", details: null, hint: null }, status));
  expect(came).toBeInstanceOf(StoreError);
  expect(came).toMatchObject({ code, away, functionName: "snaptrade_begin_job" });
  expect(sent).toBe(1);
});

test.each<[string, Reply]>([
  ["a cut connection", (response) => response.destroy()],
  ["a page of something in between", (response) => response.writeHead(502).end("<html>502</html>")],
  ...[
    null,
    "down",
    [],
    { error: "down" },
    { code: 502, message: { text: "down" } },
    { code: "502", message: "down" },
  ].map((body): [string, Reply] => [
    `a JSON of something in between, ${JSON.stringify(body)},`,
    (response) => sendJson(response, 502, JSON.stringify(body)),
  ]),
  ["no answer in time", () => {}],
])("%s is thrown as Postgres away, after one request", async (_, reply) => {
  const { came, sent } = await call(reply, 1_000);
  expect(came).toBeInstanceOf(StoreError);
  expect(came).toMatchObject({ away: true });
  expect(String(came)).not.toContain("sb_secret_marker");
  expect(sent).toBe(1);
});

test.each([null, [], "done", { outcome: null }, { error: "refused" }])(
  "an answer of another shape is an error too: %j",
  async (body) => {
    const { came } = await call(says(body));
    expect(came).toBeInstanceOf(StoreError);
  },
);
