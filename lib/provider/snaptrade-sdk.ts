import { Agent as HttpAgent } from "node:http";
import { Agent as HttpsAgent } from "node:https";
import type { CommercialApiKeyAuth, Snaptrade } from "snaptrade-typescript-sdk";

export type SnapTradeSdk = Snaptrade<CommercialApiKeyAuth>;
type SdkOptions = { clientId: string; consumerKey: string; baseUrl: string };

/** Long enough for the calls of one run, short enough that a frozen and thawed function rarely meets a dead socket. */
const IDLE_SOCKET_MS = 4_000;

/**
 * The official SDK, loaded with the first call: its import costs about 250 ms and 25 MB, which a webhook need not pay.
 *
 * Left to itself the SDK answers a 429 with three attempts and 35 s of sleep, prints to the console and then throws an
 * error without status or headers. It does so for every error that axios throws with a 429 in it, a body that is cut
 * off among them. Hence no status is an error for axios, and the body comes as a stream that we read outside the SDK.
 * No redirect and no proxy is followed: the user's secret is in the URL, and goes to SnapTrade only (I10).
 */
export function lazySnapTradeSdk(options: SdkOptions): () => Promise<SnapTradeSdk> {
  let loaded: Promise<SnapTradeSdk> | undefined;
  return () => {
    loaded ??= loadSdk(options).catch((error: unknown) => {
      loaded = undefined;
      throw error;
    });
    return loaded;
  };
}

async function loadSdk({ clientId, consumerKey, baseUrl }: SdkOptions): Promise<SnapTradeSdk> {
  const { Snaptrade, SnaptradeAuth } = await import("snaptrade-typescript-sdk");
  return new Snaptrade({
    auth: SnaptradeAuth.commercialApiKey({ clientId, consumerKey }),
    basePath: baseUrl.replace(/\/+$/, ""),
    baseOptions: {
      responseType: "stream",
      validateStatus: () => true,
      maxRedirects: 0,
      proxy: false,
      httpAgent: new HttpAgent({ keepAlive: true, timeout: IDLE_SOCKET_MS }),
      httpsAgent: new HttpsAgent({ keepAlive: true, timeout: IDLE_SOCKET_MS }),
    },
  });
}
