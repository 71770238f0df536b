import type { TestProject } from "vitest/node";
import { startSharedServices } from "@/tests/support/shared-services";

declare module "vitest" {
  interface ProvidedContext {
    sharedServicesUrl: string;
  }
}

export default async function setup(project: TestProject): Promise<() => Promise<void>> {
  const services = await startSharedServices();
  project.provide("sharedServicesUrl", services.url);
  return services.close;
}
