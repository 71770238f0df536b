import { Agent, type IncomingMessage, request } from "node:http";

/** `status` 0: no answer came. */
export type PostAnswer = { status: number; outcome: string | null };
export type Poster = { post(body: string, signature: string): Promise<PostAnswer>; close(): void };

const TIMEOUT_MS = 30_000;

/** Posts webhooks over connections that are kept: a new one for each would cost more than the service's answer. */
export function createPoster(url: string, connections: number): Poster {
  const agent = new Agent({ keepAlive: true, maxSockets: connections });

  function once(body: string, signature: string): Promise<PostAnswer | "stale connection"> {
    return new Promise((resolve) => {
      const headers = {
        "Content-Type": "application/json",
        "Content-Length": Buffer.byteLength(body),
        Signature: signature,
      };
      const sent = request(url, { method: "POST", agent, headers, timeout: TIMEOUT_MS });
      sent.on("timeout", () => sent.destroy());
      sent.on("error", () => resolve(sent.reusedSocket ? "stale connection" : { status: 0, outcome: null }));
      sent.on("response", (response) => {
        readText(response).then(
          (text) => resolve({ status: response.statusCode ?? 0, outcome: outcomeIn(text) }),
          () => resolve({ status: 0, outcome: null }),
        );
      });
      sent.end(body);
    });
  }

  return {
    async post(body, signature) {
      const answer = await once(body, signature);
      if (answer !== "stale connection") return answer;
      // The server closed an idle connection just as it was used: says nothing about the event (Node docs, reusedSocket).
      const again = await once(body, signature);
      return again === "stale connection" ? { status: 0, outcome: null } : again;
    },
    close: () => agent.destroy(),
  };
}

async function readText(response: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = [];
  for await (const chunk of response) chunks.push(Buffer.from(chunk));
  return Buffer.concat(chunks).toString("utf8");
}

function outcomeIn(text: string): string | null {
  try {
    const answer: unknown = JSON.parse(text);
    const hasOutcome = typeof answer === "object" && answer !== null && "outcome" in answer;
    return hasOutcome ? String(answer.outcome) : null;
  } catch {
    return null;
  }
}
