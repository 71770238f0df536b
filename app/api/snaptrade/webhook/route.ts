import { after } from "next/server";
import { route } from "@/lib/http/route";
import { receiveWebhook } from "@/lib/webhook/receive-webhook";

export const runtime = "nodejs";
export const dynamic = "force-dynamic";
export const maxDuration = 15;

export const POST = route((service, request) => receiveWebhook(service, request, after));
