import { route } from "@/lib/http/route";
import { receiveFailedMessage } from "@/lib/jobs/receive-failed-message";

export const runtime = "nodejs";
export const dynamic = "force-dynamic";
export const maxDuration = 60;

export const POST = route(receiveFailedMessage);
