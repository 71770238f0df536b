/**
 * The shared part of every script that touches the budget (I5, I6). Times are milliseconds.
 *
 * GCRA: `tat` is the theoretical time of the next call. A reservation of n calls starts at `tat`, or now, and moves it by n
 * calls. Share + 5 % is the ceiling as the provider counts, and nothing is left of the 5 % for a burst: a slot counts up to
 * `late` after its time, and its calls come together, so a window can hold that much more than the pointer moves in it.
 * What remains, `slack`, is how far a slot may reach into a slot of later. (Below a limit of 160, at a share of 0.75,
 * nothing remains of it, and a slot may pass the 5 %.) After a flush `tat` is now.
 *
 * A job that is due later than the next free time (spacing, a failure's delay, an account's cooldown) gets its slot at its
 * due time, up to a window ahead. Such slots stand in blocks before the pointer, each block from a whole second on; the
 * pointer flows around them, and only a gap that is too short for the beginning of a slot is lost.
 *
 * `pace` is a second pointer, of the calls of runs that were really admitted. It tells what a slot that is too late may
 * still use, and where to begin when the limit changes.
 *
 * `spares` holds calls that runs did not make (a first answer of 403, fewer pages than last time), each under the time of
 * its slot. Slots that are out cannot move up, so a single job that comes then takes such calls at once. Whoever makes
 * them, they are calls of that slot, and count as long as it would: a window holds no more than without them.
 *
 * ARGV[1] now ('' = Redis's own clock), [2] configured limit, [3] share, [4] window. KEYS[1] budget, [2] client cooldown.
 */
export const LUA_BUDGET = `
local BUDGET, COOLDOWN = KEYS[1], KEYS[2]
local now = tonumber(ARGV[1])
if not now then
  local t = redis.call('TIME')
  now = tonumber(t[1]) * 1000 + math.floor(tonumber(t[2]) / 1000)
end
local share, window = tonumber(ARGV[3]), tonumber(ARGV[4])
local late = window / 30
local stored = redis.call('HMGET', BUDGET, 'tat', 'gen', 'hold', 'seen', 'rate', 'ahead', 'pace', 'spares')
local tat, gen, hold, seen = tonumber(stored[1]), tonumber(stored[2] or '0'), tonumber(stored[3] or '0'), tonumber(stored[4])
local limit = tonumber(ARGV[2])
if seen and seen < limit then limit = seen end
local perCall = window / (limit * share)
-- The most calls of one slot: holdings with its account, or a few pages.
local most = math.max(4, math.floor(limit * 0.0125))
local slack = math.max(0, 0.05 * window / share - late - most * perCall)
local function text(n) return string.format('%.3f', n) end

local pace = math.max(tonumber(stored[7] or '0'), now)
-- Spare calls were spent by the run that left them, and are made later: they are spent again, as far as it can matter to a
-- slot that is too late. Without that end a storm of failures would drive "pace" away from now.
local function spend(calls, isSpare)
  local after = pace + calls * perCall
  if isSpare then after = math.max(pace, math.min(after, now + late + slack + 2 * most * perCall)) end
  pace = after
  redis.call('HSET', BUDGET, 'pace', text(pace))
end

-- A changed limit voids the slots handed out: they were cut for another one.
local rate = text(perCall)
if stored[5] ~= rate then
  if stored[5] then
    gen = gen + 1
    tat = pace
    redis.call('HSET', BUDGET, 'tat', text(tat))
    redis.call('HDEL', BUDGET, 'ahead', 'spares')
    stored[6], stored[8] = false, false
  end
  redis.call('HSET', BUDGET, 'rate', rate, 'gen', gen)
end

-- {time of the slot, calls}, the newest last.
local spare, spares = {}, 0
for at, calls in string.gmatch(stored[8] or '', '(%d+)-(%d+)') do
  if tonumber(at) >= now - late then
    spare[#spare + 1] = {tonumber(at), tonumber(calls)}
    spares = spares + tonumber(calls)
  end
end
local function keepSpare()
  local texts = {}
  for i, one in ipairs(spare) do texts[i] = string.format('%.0f-%d', one[1], one[2]) end
  redis.call('HSET', BUDGET, 'spares', table.concat(texts, ' '))
end
local function addSpare(at, calls)
  if at < now - late then return end
  local i = #spare
  while i > 0 and spare[i][1] > at do i = i - 1 end
  table.insert(spare, i + 1, {at, calls})
  spares = spares + calls
  keepSpare()
end
-- The newest, which count for the longest. Answers the time of the oldest among them.
local function takeSpare(calls)
  spares = spares - calls
  local at
  while calls > 0 do
    local newest = spare[#spare]
    local used = math.min(calls, newest[2])
    at, calls, newest[2] = newest[1], calls - used, newest[2] - used
    if newest[2] == 0 then table.remove(spare) end
  end
  keepSpare()
  return at
end

-- Slots of later, as blocks {from, to} in order. Those that the pointer has passed stay until their time: a reservation
-- that is given back moves it behind them again.
local ahead = {}
for from, to in string.gmatch(stored[6] or '', '([%d.]+)-([%d.]+)') do
  if tonumber(to) > now then ahead[#ahead + 1] = {tonumber(from), tonumber(to)} end
end
if not tat then tat = now end
local cooldown = tonumber(redis.call('GET', COOLDOWN) or '0')

-- Kept for an hour after its time: an old delivery is known by the slot of the next one.
local function keep(slot, at, calls, before, after)
  redis.call('SET', slot, string.format('%.0f', at) .. ':' .. calls .. ':' .. gen .. ':' .. text(before) .. ':' .. text(after),
    'PX', string.format('%.0f', math.max(0, at - now) + 3600000))
end

-- The slot of a delivery, if it was cut under the limit in force: its time and its calls.
local function find(slot)
  local value = redis.call('GET', slot)
  if not value then return nil end
  local at, calls, g = string.match(value, '^(%d+):(%d+):(%d+):')
  if tonumber(g) ~= gen then return nil end
  return tonumber(at), tonumber(calls), value
end

local function keepAhead()
  local texts = {}
  for i, block in ipairs(ahead) do texts[i] = text(block[1]) .. '-' .. text(block[2]) end
  redis.call('HSET', BUDGET, 'ahead', table.concat(texts, ' '))
end

local function move(to)
  tat = to
  redis.call('HSET', BUDGET, 'tat', text(tat))
end

-- The first time from "at" on at which "length" touches no block, and the block that ends there.
local function gap(at, length)
  local behind
  for i, block in ipairs(ahead) do
    if block[2] > at and block[1] < at + length then at, behind = block[2], i end
  end
  return at, behind
end

-- Where "length" of free time ends that begins at "at".
local function ends(at, length)
  local to = at + length
  for _, block in ipairs(ahead) do
    if block[2] > at and block[1] < to then to = to + block[2] - block[1] end
  end
  return to
end

-- The time at which n calls would be free, how many of them one slot may hold, and whether they are spare ones: those are
-- for a single job that may begin now.
local function nextFree(n, isNow)
  local calls = math.min(n, most)
  local from = math.max(now, hold, cooldown)
  local base = gap(math.max(tat, from), math.max(perCall, calls * perCall - slack))
  if isNow and base > now and from == now and spares >= calls then return now, calls, true end
  return base, calls, false
end

-- Takes what nextFree has found. Answers the time of the slot, and where the pointer is then; 0: it stays.
local function take(base, calls, isSpare)
  if isSpare then return takeSpare(calls), 0 end
  local after = ends(base, calls * perCall)
  move(after)
  return math.max(base, now), after
end

-- A slot at the whole second after its due time, or behind the slots that stand there.
local function reserveAhead(slot, n, due)
  local length = n * perCall
  local at, behind = gap(math.ceil(due / 1000) * 1000, length)
  if behind then
    ahead[behind][2] = at + length
  else
    local i = 1
    while ahead[i] and ahead[i][1] < at do i = i + 1 end
    table.insert(ahead, i, {at, at + length})
  end
  keepAhead()
  keep(slot, at, n, at, at + length)
  return at, n, true
end

-- Reserves, no sooner than notBefore; repeating it charges once. What is due later than a window from now gets no slot
-- yet: it reserves when it is delivered.
local function reserve(slot, n, notBefore, isBulk)
  local had, hadCalls = find(slot)
  if had and had >= now - late then return had, hadCalls, false end
  local base, calls, isSpare = nextFree(n, notBefore <= now and not isBulk)
  if notBefore > now + window then return notBefore, 0, false end
  if notBefore > math.max(base, now) then return reserveAhead(slot, calls, notBefore) end
  local before = tat
  local at, after = take(base, calls, isSpare)
  keep(slot, at, calls, before, after)
  return at, calls, true
end

local function isSpareSlot(value) return string.match(value, ':0%.000$') end

-- Gives a reservation back if nothing was reserved after it.
local function giveBack(slot)
  local at, calls, value = find(slot)
  if not at then return 0 end
  redis.call('DEL', slot)
  if isSpareSlot(value) then
    addSpare(at, calls)
    return 1
  end
  local before, after = string.match(value, ':([%d%.]+):([%d%.]+)$')
  if after == text(tat) then
    move(tonumber(before))
    return 1
  end
  for i, block in ipairs(ahead) do
    if text(block[2]) == after then
      block[2] = tonumber(before)
      if block[2] <= block[1] then table.remove(ahead, i) end
      keepAhead()
      return 1
    end
  end
  return 0
end
local function whole(n) return string.format('%.0f', math.max(0, math.ceil(n))) end
`;
