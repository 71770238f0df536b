/**
 * One clock for a whole row: SnapTrade's windows, QStash's delays, Postgres's times, the budget in Redis, the service's
 * own clock and every contestant's sleeps run `scale` times as fast as the wall, from one moment on. So all of them keep
 * the settings that they have in production (a window of 60 s, delays in whole seconds, leases of 60 s), and no figure
 * depends on which of them a scale would forget.
 */
export type WorldClock = { scale: number; startMs: number };

/** Milliseconds since the epoch, in the row's time. */
export function worldNow(clock: WorldClock): number {
  return worldTime(clock, Date.now());
}

/** The row's time at a moment of the wall clock. */
export function worldTime({ scale, startMs }: WorldClock, wallMs: number): number {
  return startMs + (wallMs - startMs) * scale;
}

/** How long the wall takes for so many milliseconds of the row's time. */
export function wallMs({ scale }: WorldClock, worldMs: number): number {
  return worldMs / scale;
}
