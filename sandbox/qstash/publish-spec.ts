import { createHash } from "node:crypto";
import { validateHeaderName, validateHeaderValue } from "node:http";
import { parseUpstashDuration } from "@/sandbox/qstash/durations";
import { reprefixed } from "@/sandbox/qstash/header-names";
import type { CallbackSpec, FlowLimits, HeaderRecord, PublishSpec } from "@/sandbox/qstash/message";
import { parseRetryDelay, type RetryDelay } from "@/sandbox/qstash/retry-delay-expression";

export type PublishInput = { destination: string; headers: HeaderRecord; body: Buffer; queueName?: string | undefined };
export type Refused = { kind: "refused"; status: number; error: string };
export type ParsedPublish = { kind: "ok"; spec: PublishSpec } | Refused;

/** Upstash pricing, pay-as-you-go: message size and HTTP response duration. */
const LARGEST_BODY_BYTES = 10 * 1024 * 1024;
const LONGEST_RESPONSE_MS = 2 * 3_600_000;

const DEFAULT_RETRIES = 3;
const LONGEST_PERIOD_MS = 7 * 86_400_000;
const FLOW_VALUE_RULE =
  "Upstash-Flow-Control-Value should be either rate=X or parallelism=Y, or both as comma-separated values";
const METHODS = ["GET", "POST", "PUT", "PATCH", "DELETE"];
/** Set by the connection or by the emulator itself, so never forwarded. */
const NOT_FORWARDED = /^(?:host|connection|content-length|content-type|transfer-encoding|upstash-.*)$/;

class Refusal extends Error {
  constructor(
    readonly status: number,
    message: string,
  ) {
    super(message);
  }
}

/** Reads what a publisher asked for from the headers of the documented publish API; the texts of refusals are the known ones. */
export function parsePublish(input: PublishInput): ParsedPublish {
  try {
    return { kind: "ok", spec: read(input) };
  } catch (error) {
    if (error instanceof Refusal) return { kind: "refused", status: error.status, error: error.message };
    throw error;
  }
}

function read({ destination, headers, body, queueName }: PublishInput): PublishSpec {
  checkUrl(destination, "destination");
  if (body.length > LARGEST_BODY_BYTES) {
    throw new Refusal(412, `message of ${body.length} bytes is larger than the plan's ${LARGEST_BODY_BYTES}`);
  }
  const configuration = Object.fromEntries(
    Object.entries(headers).filter(([name]) => name.startsWith("upstash-") || name === "content-type"),
  );
  const forwarded = readForwarded(configuration);
  return {
    destination,
    method: readMethod(configuration["upstash-method"]),
    headers: forwarded,
    body,
    configuration,
    maxRetries: readCount(configuration["upstash-retries"], "Upstash-Retries") ?? DEFAULT_RETRIES,
    retryDelay: readRetryDelay(configuration["upstash-retry-delay"]),
    timeoutMs: Math.min(
      readDuration(configuration["upstash-timeout"], "Upstash-Timeout") ?? LONGEST_RESPONSE_MS,
      LONGEST_RESPONSE_MS,
    ),
    due: readDue(configuration),
    callback: readCallback(configuration, "upstash-callback"),
    failureCallback: readCallback(configuration, "upstash-failure-callback"),
    labels: (configuration["upstash-label"] ?? "")
      .split(",")
      .map((label) => label.trim())
      .filter((label) => label !== ""),
    // Flow control is for publish, batch and schedules; a queue has its own parallelism (upstash/qstash-js pull 223).
    flow: queueName === undefined ? readFlow(configuration) : undefined,
    deduplicationId: readDeduplicationId(configuration, destination, forwarded, body),
    queueName,
  };
}

function checkUrl(url: string, what: string): void {
  if (!/^https?:\/\//i.test(url)) {
    throw new Refusal(400, `invalid ${what} url: endpoint has invalid scheme, add http:// or https://`);
  }
  if (!URL.canParse(url)) throw new Refusal(400, `invalid ${what} url: ${url}`);
}

function readForwarded(configuration: HeaderRecord): HeaderRecord {
  const forwarded = Object.fromEntries(
    Object.entries(reprefixed(configuration, "upstash-forward-", "")).filter(([name]) => !NOT_FORWARDED.test(name)),
  );
  const contentType = configuration["content-type"];
  const headers = contentType === undefined ? forwarded : { "content-type": contentType, ...forwarded };
  for (const [name, value] of Object.entries(headers)) {
    try {
      validateHeaderName(name);
      validateHeaderValue(name, value);
    } catch {
      throw new Refusal(400, `invalid header ${JSON.stringify(name)}`);
    }
  }
  return headers;
}

function readMethod(text = "POST"): string {
  if (!METHODS.includes(text))
    throw new Refusal(400, `Upstash-Method must be one of ${METHODS.join(", ")}, not ${text}`);
  return text;
}

function readCount(text: string | undefined, name: string): number | undefined {
  if (text === undefined) return undefined;
  if (!/^\d{1,9}$/.test(text.trim()))
    throw new Refusal(400, `${name} must be a whole number of 0 or more, not ${text}`);
  return Number(text);
}

function readDuration(text: string | undefined, name: string): number | undefined {
  if (text === undefined) return undefined;
  const duration = parseUpstashDuration(text.trim());
  if (duration === undefined) throw new Refusal(400, `${name} must be a duration such as 30s or 1d10h, not ${text}`);
  return duration;
}

function readRetryDelay(source: string | undefined): RetryDelay | undefined {
  if (source === undefined) return undefined;
  const parsed = parseRetryDelay(source);
  if ("error" in parsed) throw new Refusal(400, `Upstash-Retry-Delay is not a valid expression: ${parsed.error}`);
  return parsed;
}

/** QStash docs, features/delay: `Upstash-Not-Before` (unix seconds) overrides `Upstash-Delay`. */
function readDue(configuration: HeaderRecord): PublishSpec["due"] {
  const afterMs = readDuration(configuration["upstash-delay"], "Upstash-Delay") ?? 0;
  const notBefore = configuration["upstash-not-before"]?.trim();
  if (notBefore === undefined) return { afterMs };
  if (!/^\d{1,12}$/.test(notBefore)) {
    throw new Refusal(400, `Upstash-Not-Before must be a unix timestamp in seconds, not ${notBefore}`);
  }
  return { atWallMs: Number(notBefore) * 1_000 };
}

/**
 * A callback is a message of its own: `Upstash-Callback-X` configures it as `Upstash-X` configures a publish; without own retries
 * it has those of its source (QStash docs, features/callbacks; OpenAPI). It is read here once, so that a bad one is refused now.
 */
function readCallback(configuration: HeaderRecord, name: string): CallbackSpec | undefined {
  const url = configuration[name]?.trim();
  if (url === undefined) return undefined;
  checkUrl(url, name === "upstash-callback" ? "callback" : "failure callback");
  const own = reprefixed(configuration, `${name}-`, "upstash-");
  const retries = own["upstash-retries"] ?? configuration["upstash-retries"];
  const spec = {
    url,
    configuration: {
      ...own,
      "content-type": "application/json",
      ...(retries === undefined ? {} : { "upstash-retries": retries }),
    },
  };
  read({ destination: url, headers: spec.configuration, body: Buffer.alloc(0) });
  return spec;
}

function readFlow(configuration: HeaderRecord): PublishSpec["flow"] {
  const key = configuration["upstash-flow-control-key"];
  const value = configuration["upstash-flow-control-value"];
  if (key === undefined && value === undefined) return undefined;
  if (!key) throw new Refusal(400, "Upstash-Flow-Control-Key is missing");
  return { key, limits: readFlowLimits(value ?? "") };
}

function readFlowLimits(value: string): FlowLimits {
  const limits: FlowLimits = { parallelism: undefined, rate: undefined, periodMs: 1_000 };
  for (const part of value.split(",")) {
    const [name, text = ""] = part.split("=", 2).map((side) => side.trim());
    if (name === "period") {
      const period = parseUpstashDuration(text);
      if (period === undefined || period < 1_000 || period > LONGEST_PERIOD_MS) throw new Refusal(400, FLOW_VALUE_RULE);
      limits.periodMs = period;
    } else if ((name === "rate" || name === "parallelism") && /^[1-9]\d{0,8}$/.test(text)) {
      limits[name] = Number(text);
    } else {
      throw new Refusal(400, FLOW_VALUE_RULE);
    }
  }
  if (limits.rate === undefined && limits.parallelism === undefined) throw new Refusal(400, FLOW_VALUE_RULE);
  return limits;
}

/** QStash docs, features/deduplication: an own id, or a hash of destination, body, content type and forwarded headers. */
function readDeduplicationId(
  configuration: HeaderRecord,
  destination: string,
  forwarded: HeaderRecord,
  body: Buffer,
): string | undefined {
  const own = configuration["upstash-deduplication-id"];
  if (own?.includes(":")) throw new Refusal(400, "DeduplicationId cannot contain ':'");
  if (own) return own;
  if (configuration["upstash-content-based-deduplication"]?.toLowerCase() !== "true") return undefined;
  const headers = JSON.stringify(Object.entries(forwarded).sort(([a], [b]) => (a < b ? -1 : 1)));
  return createHash("sha256")
    .update(JSON.stringify([destination, headers]))
    .update(body)
    .digest("hex");
}
