import type { MemoryRedis } from "@/tests/histories/memory-redis";

type Block = { from: number; to: number };
function readBlock(text: string): Block {
  const [from = 0, to = 0] = text.split("-").map(Number);
  return { from, to };
}

/** The budget of lib/guards/lua-budget.ts. */
export function openBudget(redis: MemoryRedis, keys: string[], args: string[]) {
  const [budgetKey = "", cooldownKey = ""] = keys;
  const now = Number(args[0]);
  const share = Number(args[2]);
  const window = Number(args[3]);
  const late = window / 30;
  const stored = redis.hash(budgetKey);
  const seen = stored.get("seen");
  const limit = Math.min(Number(args[1]), seen === undefined ? Number.POSITIVE_INFINITY : Number(seen));
  const perCall = window / (limit * share);
  const most = Math.max(4, Math.floor(limit * 0.0125));
  const slack = Math.max(0, (0.05 * window) / share - late - most * perCall);
  let pace = Math.max(Number(stored.get("pace") ?? 0), now);
  const hold = Number(stored.get("hold") ?? 0);
  const cooldown = Number(redis.get(cooldownKey) ?? 0);
  const rate = perCall.toFixed(3);
  const kept = stored.get("tat");
  let gen = Number(stored.get("gen") ?? 0);
  let tat = kept === undefined ? now : Number(kept);
  if (stored.get("rate") !== rate) {
    if (stored.has("rate")) {
      gen += 1;
      tat = pace;
      stored.set("tat", pace.toFixed(3));
      stored.delete("ahead");
      stored.delete("spares");
    }
    stored.set("rate", rate).set("gen", String(gen));
  }
  const blocks = (stored.get("ahead") ?? "").split(" ").filter(Boolean).map(readBlock);
  const ahead = blocks.filter(({ to }) => to > now);

  const spare = [...(stored.get("spares") ?? "").matchAll(/(\d+)-(\d+)/g)]
    .map(([, at, calls]) => ({ at: Number(at), calls: Number(calls) }))
    .filter(({ at }) => at >= now - late);

  function keepSpare(): void {
    stored.set("spares", spare.map(({ at, calls }) => `${at.toFixed(0)}-${calls}`).join(" "));
  }
  function addSpare(at: number, calls: number): void {
    if (at < now - late) return;
    spare.splice(spare.findLastIndex((one) => one.at <= at) + 1, 0, { at, calls });
    keepSpare();
  }
  function takeSpare(calls: number): number {
    let [at, left] = [now, calls];
    for (let newest = spare.at(-1); left > 0 && newest !== undefined; newest = spare.at(-1)) {
      const used = Math.min(left, newest.calls);
      at = newest.at;
      left -= used;
      newest.calls -= used;
      if (newest.calls === 0) spare.pop();
    }
    keepSpare();
    return at;
  }
  function move(to: number): void {
    tat = to;
    stored.set("tat", to.toFixed(3));
  }
  function spend(calls: number, isSpare = false): void {
    const after = pace + calls * perCall;
    pace = isSpare ? Math.max(pace, Math.min(after, now + late + slack + 2 * most * perCall)) : after;
    stored.set("pace", pace.toFixed(3));
  }
  function find(slot: string): { at: number; calls: number; value: string } | null {
    const value = redis.get(slot);
    if (value === null) return null;
    const [at, calls, cut] = value.split(":").map(Number);
    return cut === gen ? { at: at ?? 0, calls: calls ?? 0, value } : null;
  }
  function keepAhead(): void {
    stored.set("ahead", ahead.map(({ from, to }) => `${from.toFixed(3)}-${to.toFixed(3)}`).join(" "));
  }
  function gap(from: number, length: number): { at: number; behind: Block | null } {
    let found = { at: from, behind: null as Block | null };
    for (const block of ahead) {
      if (block.to > found.at && block.from < found.at + length) found = { at: block.to, behind: block };
    }
    return found;
  }
  function ends(at: number, length: number): number {
    let to = at + length;
    for (const block of ahead) if (block.to > at && block.from < to) to += block.to - block.from;
    return to;
  }
  function nextFree(n: number, isNow: boolean): { base: number; calls: number; isSpare: boolean } {
    const calls = Math.min(n, most);
    const from = Math.max(now, hold, cooldown);
    const base = gap(Math.max(tat, from), Math.max(perCall, calls * perCall - slack)).at;
    const spares = spare.reduce((sum, one) => sum + one.calls, 0);
    return isNow && base > now && from === now && spares >= calls
      ? { base: now, calls, isSpare: true }
      : { base, calls, isSpare: false };
  }
  function take({ base, calls, isSpare }: ReturnType<typeof nextFree>): { at: number; after: number } {
    if (isSpare) return { at: takeSpare(calls), after: 0 };
    const after = ends(base, calls * perCall);
    move(after);
    return { at: Math.max(base, now), after };
  }
  function keep(slot: string, at: number, calls: number, before: number, after: number): void {
    const value = `${at.toFixed(0)}:${calls}:${gen}:${before.toFixed(3)}:${after.toFixed(3)}`;
    redis.set(slot, value, Math.max(0, at - now) + 3_600_000);
  }
  function reserveAhead(slot: string, calls: number, due: number): number {
    const length = calls * perCall;
    const { at, behind } = gap(Math.ceil(due / 1000) * 1000, length);
    if (behind === null) ahead.push({ from: at, to: at + length });
    else behind.to = at + length;
    ahead.sort((a, b) => a.from - b.from);
    keepAhead();
    keep(slot, at, calls, at, at + length);
    return at;
  }
  function reserve(
    slot: string,
    n: number,
    notBefore: number,
    isBulk = false,
  ): { at: number; calls: number; reserved: boolean } {
    const had = find(slot);
    if (had !== null && had.at >= now - late) return { at: had.at, calls: had.calls, reserved: false };
    const free = nextFree(n, notBefore <= now && !isBulk);
    const { base, calls } = free;
    if (notBefore > now + window) return { at: notBefore, calls: 0, reserved: false };
    if (notBefore > Math.max(base, now)) return { at: reserveAhead(slot, calls, notBefore), calls, reserved: true };
    const before = tat;
    const { at, after } = take(free);
    keep(slot, at, calls, before, after);
    return { at, calls, reserved: true };
  }
  function giveBack(slot: string): void {
    const had = find(slot);
    if (had === null) return;
    const [, , , before = "", after = ""] = had.value.split(":");
    redis.delete(slot);
    if (Number(after) === 0) {
      addSpare(had.at, had.calls);
      return;
    }
    if (after === tat.toFixed(3)) {
      move(Number(before));
      return;
    }
    const i = ahead.findIndex(({ to }) => to.toFixed(3) === after);
    const block = ahead[i];
    if (block === undefined) return;
    block.to = Number(before);
    if (block.to <= block.from) ahead.splice(i, 1);
    keepAhead();
  }
  const wait = (at: number) => Math.max(0, Math.ceil(at - now)).toFixed(0);
  return {
    now,
    late,
    limit,
    gen,
    share,
    window,
    rate,
    hold,
    cooldown,
    spend,
    take,
    addSpare,
    pace: () => pace,
    find,
    nextFree,
    reserve,
    giveBack,
    wait,
    stored,
  };
}

export type MemoryBudget = ReturnType<typeof openBudget>;
