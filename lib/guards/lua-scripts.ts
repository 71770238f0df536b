import { LUA_BUDGET } from "@/lib/guards/lua-budget";

/**
 * One script a move. Scripts that count take (field, amount) pairs for the metrics hash at the end of ARGV.
 * No cjson, no RESP3: they run the same on Upstash, on Redis 7 and on the in-memory engine.
 */

const LUA_COUNT = `
local function count(key, from)
  for i = from, #ARGV, 2 do redis.call('HINCRBY', key, ARGV[i], ARGV[i + 1]) end
end
`;

/**
 * claim: SET NX EX on the webhook key, then on the queued key of a single-key event.
 * KEYS webhook, metrics [, queued]. ARGV pending, webhookTtl, queuedTtl, shortCut ('1'), then the fields counted for a
 * duplicate, for a coalesced event, and for the job that it did not make.
 * A null from NX is compared with our own token first (a lost reply), and a foreign `pending` proves nothing: replaced.
 * So is the job of an event without the short cut: whether one behind it may use that job, its settle says anew.
 */
export const LUA_CLAIM = `
local value = redis.call('SET', KEYS[1], ARGV[1], 'NX', 'EX', ARGV[2]) and ARGV[1] or redis.call('GET', KEYS[1])
if value == 'accepted' then
  redis.call('HINCRBY', KEYS[2], ARGV[5], 1)
  return {'duplicate', ''}
end
if value ~= ARGV[1] then redis.call('SET', KEYS[1], ARGV[1], 'EX', ARGV[2]) end
if not KEYS[3] then return {'claimed', ''} end
local queued = redis.call('SET', KEYS[3], ARGV[1], 'NX', 'EX', ARGV[3]) and ARGV[1] or redis.call('GET', KEYS[3])
if ARGV[4] ~= '1' or string.sub(queued, 1, 8) == 'pending:' then
  if queued ~= ARGV[1] then redis.call('SET', KEYS[3], ARGV[1], 'EX', ARGV[3]) end
  return {'claimed', ''}
end
redis.call('SET', KEYS[1], 'accepted', 'EX', ARGV[2])
redis.call('HINCRBY', KEYS[2], ARGV[6], 1)
redis.call('HINCRBY', KEYS[2], ARGV[7], 1)
return {'coalesced', queued}
`;

/** Our claims go when the event could not be made durable. KEYS webhook [, queued]. ARGV pending. */
export const LUA_UNCLAIM = `
local gone = 0
for i = 1, #KEYS do
  if redis.call('GET', KEYS[i]) == ARGV[1] then gone = gone + redis.call('DEL', KEYS[i]) end
end
return gone
`;

/**
 * settle, before the publish. KEYS budget, cooldown, metrics, webhook, queued ('' none), slot...
 * ARGV [5] pending, [6] webhookTtl, [7] queuedTtl, [8] job id of the queued slot or '' (nothing may stand behind the queued
 * key then, whoever put it there: that one knew less), [9] number of slots,
 * then (calls, dueInMs) a slot, then the counts. Returns the wait of each slot.
 */
export const LUA_SETTLE = `${LUA_BUDGET}${LUA_COUNT}
redis.call('SET', KEYS[4], 'accepted', 'EX', ARGV[6])
if KEYS[5] ~= '' and ARGV[8] == '' then
  redis.call('DEL', KEYS[5])
elseif KEYS[5] ~= '' and redis.call('GET', KEYS[5]) == ARGV[5] then
  redis.call('SET', KEYS[5], ARGV[8], 'EX', ARGV[7])
end
local slots, waits = tonumber(ARGV[9]), {}
for i = 1, slots do
  local at = reserve(KEYS[5 + i], tonumber(ARGV[8 + 2 * i]), now + tonumber(ARGV[9 + 2 * i]))
  waits[i] = whole(at - now)
end
count(KEYS[3], 10 + 2 * slots)
return waits
`;

/**
 * admit. KEYS budget, cooldown, metrics, account cooldown, lock, slot of this delivery, slot of the next one.
 * ARGV [5] token, [6] lease, [7] lockTtl, [8] calls, [9] replace a held lock ('1'), then the counts.
 * Returns {go, calls, limit, reserved here, the time of its calls' slot} | {held}
 *  | {defer, waitMs, reason, reserved here, notBeforeMs}.
 * A held lock reserves nothing and is not the last word: Postgres decides.
 */
export const LUA_ADMIT = `${LUA_BUDGET}${LUA_COUNT}
count(KEYS[3], 10)
local lock = redis.call('GET', KEYS[5])
if lock and ARGV[9] ~= '1' then
  local token, lease = string.match(lock, '^(.*):(%d+)$')
  if token ~= ARGV[5] and tonumber(lease or '0') > now then return {'held'} end
end
local function defer(at, reason, reserved, blocked)
  redis.call('HINCRBY', KEYS[3], 'jobs_deferred:' .. reason, 1)
  -- A run that had begun counts its own end.
  if ARGV[9] ~= '1' then redis.call('HINCRBY', KEYS[3], 'runs:deferred', 1) end
  return {'defer', whole(at - now), reason, reserved and '1' or '0', whole(blocked - now)}
end
local account = tonumber(redis.call('GET', KEYS[4]) or '0')
local blocked = math.max(cooldown, account)
-- To a slot of the next delivery. If that one has a slot that has passed, it was handed out long ago and this one is old:
-- Postgres will say so, and what an old one reserves is lost once others have reserved behind it.
local function putOff(notBefore, reason)
  local next = find(KEYS[7])
  if redis.call('GET', KEYS[7]) and not (next and next >= now - late) then
    return defer(math.max(now, blocked, hold), reason, false, blocked)
  end
  local at, _, fresh = reserve(KEYS[7], tonumber(ARGV[8]), notBefore)
  return defer(at, reason, fresh, blocked)
end
if math.max(blocked, hold) > now then
  return putOff(account, blocked > now and 'cooldown' or 'hold')
end
local at, calls, value = find(KEYS[6])
if at and at > now then
  redis.call('DEL', KEYS[6])
  redis.call('SET', KEYS[7], value, 'PX', string.format('%.0f', at - now + 3600000))
  return defer(at, 'early', false, now)
end
local reserved = false
if not at or at < now - late then
  local base = nextFree(tonumber(ARGV[8]), true)
  if base <= now then
    at, calls, reserved = reserve(KEYS[6], tonumber(ARGV[8]), 0)
  elseif not at or pace > now then
    return putOff(0, 'budget')
  end
  -- Else its own slot, too late to count by itself: others have left their calls unused, and so the budget is not lost
  -- where every delivery comes late.
end
local _, _, own = find(KEYS[6])
spend(calls, at >= now - late and isSpareSlot(own))
redis.call('SET', KEYS[5], ARGV[5] .. ':' .. string.format('%.0f', now + tonumber(ARGV[6])), 'EX', ARGV[7])
return {'go', tostring(calls), tostring(limit), reserved and '1' or '0', string.format('%.0f', at)}
`;

/** From here on a new event makes the trailing job. KEYS queued. */
export const LUA_UNQUEUE = `return redis.call('DEL', KEYS[1])`;

/**
 * More calls: they are free now, or not at all. KEYS budget, cooldown. ARGV [5] calls, [6] spare ones too ('1').
 * Returns {calls, the time of the slot that they are of}.
 */
export const LUA_RESERVE_NOW = `${LUA_BUDGET}
local base, calls, isSpare = nextFree(tonumber(ARGV[5]), ARGV[6] == '1')
if base > now then return {'0', '0'} end
local at = take(base, calls, isSpare)
spend(calls, isSpare)
return {tostring(calls), string.format('%.0f', at)}
`;

/**
 * finally. KEYS budget, cooldown, metrics, lock, queued, slot to give back ('' none), slot...
 * ARGV [5] token, [6] job id, [7] the run began ('1') or closed its key's jobs ('2'), [8] calls that it held and did not make,
 * [9] the time of its slot, [10] number of slots, then (calls, dueInMs), then the counts. Only the holder of the lock gives
 * anything back, and once.
 */
export const LUA_RELEASE = `${LUA_BUDGET}${LUA_COUNT}
local lock = redis.call('GET', KEYS[4])
if lock and string.match(lock, '^(.*):%d+$') == ARGV[5] then
  redis.call('DEL', KEYS[4])
  local unmade = tonumber(ARGV[8])
  if unmade > 0 then addSpare(tonumber(ARGV[9]), unmade) end
  if KEYS[6] ~= '' then giveBack(KEYS[6]) end
end
if ARGV[7] == '2' or ARGV[7] == '1' and redis.call('GET', KEYS[5]) == ARGV[6] then redis.call('DEL', KEYS[5]) end
local slots, waits = tonumber(ARGV[10]), {}
for i = 1, slots do
  local at = reserve(KEYS[6 + i], tonumber(ARGV[9 + 2 * i]), now + tonumber(ARGV[10 + 2 * i]))
  waits[i] = whole(at - now)
end
count(KEYS[3], 11 + 2 * slots)
return waits
`;

/**
 * Bulk work: slots for as many as begin within the horizon. KEYS budget, cooldown, slot...
 * ARGV [5] horizon, then calls a slot. Returns the wait of each granted slot, in order; the rest got none.
 */
export const LUA_RESERVE_BULK = `${LUA_BUDGET}
local waits = {}
for i = 1, #KEYS - 2 do
  local had = find(KEYS[2 + i])
  local base = nextFree(tonumber(ARGV[5 + i]), false)
  if not (had and had >= now - late) and base > now + tonumber(ARGV[5]) then break end
  waits[i] = whole(reserve(KEYS[2 + i], tonumber(ARGV[5 + i]), 0, true) - now)
end
return waits
`;

/** Slots for jobs that are published now, wherever they fall. KEYS budget, cooldown, slot... ARGV [5] (calls, dueInMs)... */
export const LUA_RESERVE = `${LUA_BUDGET}
local waits = {}
for i = 1, #KEYS - 2 do
  waits[i] = whole(reserve(KEYS[2 + i], tonumber(ARGV[3 + 2 * i]), now + tonumber(ARGV[4 + 2 * i])) - now)
end
return waits
`;

/** Gives back what bulk work did not use, last first. KEYS budget, cooldown, metrics, slot... Then the counts at [5]. */
export const LUA_GIVE_BACK = `${LUA_BUDGET}${LUA_COUNT}
for i = #KEYS, 4, -1 do giveBack(KEYS[i]) end
count(KEYS[3], 5)
return 1
`;

/** How far known slots are ahead (negative: past), 'none' for unknown ones. KEYS budget, cooldown, slot... */
export const LUA_FIND_SLOTS = `${LUA_BUDGET}
local waits = {}
for i = 1, #KEYS - 2 do
  local at = find(KEYS[2 + i])
  waits[i] = at and string.format('%.0f', at - now) or 'none'
end
return waits
`;

/**
 * What an answer of the provider said. KEYS budget, cooldown, metrics, account cooldown.
 * ARGV [5] seen limit or '', [6] hold, [7] client cooldown, [8] account cooldown (lengths, 0 none), then the counts.
 * Every length is a maximum: a later, shorter one never shortens it. A new limit voids the slots handed out.
 * Returns whether the limit rose.
 */
export const LUA_OBSERVE = `${LUA_BUDGET}${LUA_COUNT}
local rose = 0
if ARGV[5] ~= '' and tonumber(ARGV[5]) ~= seen then
  redis.call('HSET', BUDGET, 'seen', ARGV[5])
  local configured, force = tonumber(ARGV[2]), tonumber(ARGV[5])
  local fresh = text(window / (math.min(configured, force) * share))
  if fresh ~= rate then
    rose = tonumber(fresh) < perCall and 1 or 0
    redis.call('HSET', BUDGET, 'rate', fresh, 'gen', gen + 1, 'tat', text(pace))
    redis.call('HDEL', BUDGET, 'ahead', 'spares')
  end
end
if tonumber(ARGV[6]) > 0 and now + tonumber(ARGV[6]) > hold then
  redis.call('HSET', BUDGET, 'hold', text(now + tonumber(ARGV[6])))
end
local function cool(key, length)
  if length <= 0 then return end
  if now + length > tonumber(redis.call('GET', key) or '0') then
    redis.call('SET', key, string.format('%.0f', now + length), 'PX', string.format('%.0f', length))
  end
end
cool(COOLDOWN, tonumber(ARGV[7]))
cool(KEYS[4], tonumber(ARGV[8]))
count(KEYS[3], 9)
return rose
`;

/** The first of a wave raises the alert. KEYS alert. ARGV length of a wave in s. */
export const LUA_CLAIM_ALERT = `return redis.call('SET', KEYS[1], 'raised', 'NX', 'EX', ARGV[1]) and 1 or 0`;

/** For health and metrics. KEYS budget, cooldown, metrics. Returns {cooldownMs, used ratio, metrics flat}. */
export const LUA_READ = `${LUA_BUDGET}
local ahead = math.max(0, math.min(window, tat - now))
return {whole(cooldown - now), text(ahead / window), redis.call('HGETALL', KEYS[3])}
`;
