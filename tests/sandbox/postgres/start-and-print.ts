import { once } from "@/sandbox/postgres/databases";
import { startPostgres } from "@/sandbox/postgres/start-postgres";
import { startRedis } from "@/sandbox/redis/start-redis";

/** Starts both servers, tells where they are, and waits to be killed. */
async function main(): Promise<void> {
  const [postgres, redis] = await Promise.all([startPostgres(), startRedis()]);
  const [setting] = await once(postgres.adminUrl, (sql) => sql`show data_directory`);
  const redisUrl = redis.kind === "server" ? redis.url : null;
  process.stdout.write(`${JSON.stringify({ dataDir: setting?.data_directory, redisUrl, pid: process.pid })}\n`);
}

void main();
