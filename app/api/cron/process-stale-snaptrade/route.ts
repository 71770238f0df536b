import { receiveSweepPage } from "@/lib/http/receive-cron";
import { route } from "@/lib/http/route";

export const runtime = "nodejs";
export const dynamic = "force-dynamic";
export const maxDuration = 60;

export const POST = route(receiveSweepPage);
