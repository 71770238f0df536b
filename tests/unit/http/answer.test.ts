import { expect, test } from "vitest";
import { answer, answerText } from "@/lib/http/answer";

test("a JSON answer has its status and headers, and nothing may keep it", async () => {
  const response = answer(503, { error: "later" }, { "Retry-After": "30", "Cache-Control": "public" });
  expect(response.status).toBe(503);
  expect(await response.json()).toEqual({ error: "later" });
  expect(response.headers.get("content-type")).toMatch(/^application\/json/);
  expect(response.headers.get("retry-after")).toBe("30");
  expect(response.headers.get("cache-control")).toBe("no-store");
});

test("a text answer has its type, and nothing may keep it", async () => {
  const response = answerText(200, "up 1\n", "text/plain; version=0.0.4; charset=utf-8");
  expect(await response.text()).toBe("up 1\n");
  expect(response.headers.get("content-type")).toBe("text/plain; version=0.0.4; charset=utf-8");
  expect(response.headers.get("cache-control")).toBe("no-store");
});
