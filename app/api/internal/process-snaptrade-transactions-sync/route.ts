import { route } from "@/lib/http/route";
import { receiveDelivery } from "@/lib/jobs/receive-delivery";

export const runtime = "nodejs";
export const dynamic = "force-dynamic";
export const maxDuration = 60;

export const POST = route((service, request) => receiveDelivery(service, "transactions", request));
