import { spawnSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { gunzipSync } from "node:zlib";
import fc from "fast-check";
import { expect, test } from "vitest";
import { canonicalText } from "@/lib/webhook/canonical-text";
import { verifyWebhook } from "@/lib/webhook/verify-signature";
import { fuzzRuns } from "@/tests/fuzz/runs";
import { jsonObjectText } from "@/tests/unit/webhook/arbitrary-json";
import { jsonValue } from "@/tests/unit/webhook/json-value";

const KEY = "differential-consumer-key-ü";
/** Made by the recipe below over `fc.sample(jsonObjectText(), { numRuns: 400, seed: 20260401 })`. */
const RECORDED = "tests/fixtures/python-signatures.json.gz";

/** SnapTrade's own recipe (SnapTrade docs, webhooks, verification sample): the canonical text and its signature. */
const RECIPE = `
import base64, hashlib, hmac, json, sys
key = json.loads(sys.argv[1]).encode("utf-8")
signed = []
for text in json.load(sys.stdin):
    content = json.dumps(json.loads(text), separators=(",", ":"), sort_keys=True)
    signed.append([content, base64.b64encode(hmac.new(key, content.encode(), hashlib.sha256).digest()).decode()])
json.dump(signed, sys.stdout)
`;

type Signed = { wire: string; canonical: string; signature: string };

/** All documents through one process; null without a `python3` on the path. */
function signedByPython(texts: readonly string[]): Signed[] | null {
  const options = { input: ascii(texts), encoding: "utf8", maxBuffer: 1 << 29 } as const;
  const python = spawnSync("python3", ["-c", RECIPE, ascii(KEY)], options);
  if (python.error) return null;
  if (python.status !== 0) throw new Error(python.stderr);
  const answers: [string, string][] = JSON.parse(python.stdout);
  return texts.map((wire, at) => {
    const [canonical = "", signature = ""] = answers[at] ?? [];
    return { wire, canonical, signature };
  });
}

/** ASCII only, so that no encoding of a pipe or of an argument matters. */
function ascii(value: unknown): string {
  return JSON.stringify(value).replace(/[\u007f-\uffff]/g, (unit) => {
    return `\\u${unit.charCodeAt(0).toString(16).padStart(4, "0")}`;
  });
}

function recorded(): Signed[] {
  return JSON.parse(gunzipSync(readFileSync(RECORDED)).toString("utf8"));
}

/** The first document on which the two disagree: about the text, the genuine signature, or one that is not genuine. */
function disagreement(documents: readonly Signed[]): Signed | undefined {
  return documents.find(({ wire, canonical, signature }, at) => {
    const value = jsonValue(wire);
    const bytes = new TextEncoder().encode(wire);
    const verify = (given: string) => verifyWebhook({ signature: given, bytes, value, consumerKeys: [KEY] });
    const another = documents[(at + 1) % documents.length];
    const isForeign = another !== undefined && another.canonical !== canonical;
    return canonicalText(value) !== canonical || !verify(signature) || (isForeign && verify(another.signature));
  });
}

test("the signatures that Python made, recorded, are accepted for their own documents alone", () => {
  const documents = recorded();
  expect(documents.length).toBeGreaterThan(300);
  expect(disagreement(documents)).toBeUndefined();
});

test("documents that nobody chose are signed as Python signs them, where this machine has one", () => {
  const { numRuns, seed = Date.now() } = fuzzRuns(2_000, 0.1);
  const documents = signedByPython(fc.sample(jsonObjectText(), { numRuns, seed })) ?? recorded();
  expect(disagreement(documents), `seed ${seed}`).toBeUndefined();
}, 300_000);
