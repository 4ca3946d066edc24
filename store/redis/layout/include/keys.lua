-- The keys and arguments that most scripts have in common.
--
-- KEYS  1 jobs  2 runs  3 attempts  4 ids  5 forget  6 agenda  7 last_wakeups  8 owners  9 carrier_wakeup  10 limits
--       11 names  12 outbox  13 outbox_queue  14 recheck  15 deferred  16 throttles  17 throttle_queue  18 lane_limits  19 ttl
--       20 ordered  21 health  22 the reply of this call, for its repeats (reply:<token>:<kind>)
--       then for each queue: due, ready, claimed, ordered; then for each topic: stats, done, dead, cancelled, open,
--       unhealthy:<its namespace>, its history and that of its namespace, wakeups:<its group> when it is delivered by push, by pull, by a handler
-- ARGV  1 number of queues  2 number of topics  3 limits of topics without a policy
--       then for each queue: its number, the position of its topic, its name; then each topic's name
--       then the arguments in the script's table, from ARGV[A + 1] on; its keys begin at KEYS[K + 1]
-- The error STALE reports that a number is not that of the queue by that name.
local JOBS, RUNS, ATTEMPTS, IDS, FORGET = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5]
local AGENDA, LAST_WAKEUPS, OWNERS, CARRIER_WAKEUP, LIMITS = KEYS[6], KEYS[7], KEYS[8], KEYS[9], KEYS[10]
local NAMES, OUTBOX, OUTBOX_QUEUE, RECHECK, DEFERRED = KEYS[11], KEYS[12], KEYS[13], KEYS[14], KEYS[15]
local THROTTLES, THROTTLE_QUEUE, LANE_LIMITS, TTL, ORDERED = KEYS[16], KEYS[17], KEYS[18], KEYS[19], KEYS[20]
local HEALTH, REPLY = KEYS[21], KEYS[22]
local nq, nt = tonumber(ARGV[1]), tonumber(ARGV[2])
local A, K = 3 + nq * 3 + nt, 22 + nq * 4 + nt * 11

local topics, queues = {}, {}
for i = 1, nt do
  local k = 22 + nq * 4 + (i - 1) * 11
  topics[i] = { name = ARGV[3 + nq * 3 + i], stats = KEYS[k + 1], d = KEYS[k + 2], x = KEYS[k + 3], c = KEYS[k + 4],
    open = KEYS[k + 5], unhealthy = KEYS[k + 6], history = KEYS[k + 7], all_history = KEYS[k + 8], wakeups = k + 9, plus = {}, ended = {} }
end
if nq > 0 then
  local numbers = {}
  for i = 1, nq do
    local k, a = 22 + (i - 1) * 4, 3 + (i - 1) * 3
    queues[i] = { n = ARGV[a + 1], topic = topics[tonumber(ARGV[a + 2])], due = KEYS[k + 1], ready = KEYS[k + 2],
      claimed = KEYS[k + 3], ordered = KEYS[k + 4], name = ARGV[a + 3] }
    numbers[i] = ARGV[a + 1]
  end
  local names = call('HMGET', NAMES, unpack(numbers))
  for i = 1, nq do
    if names[i] ~= ARGV[3 + i * 3] then return redis.error_reply('STALE queue number') end
  end
  -- Most shards have no throttles, no lane settings and no ordered queues.
  if call('EXISTS', THROTTLES, LANE_LIMITS, ORDERED) > 0 then
    local orders = call('HMGET', ORDERED, unpack(numbers))
    local throttles, lanes = call('HMGET', THROTTLES, unpack(numbers)), call('HMGET', LANE_LIMITS, unpack(names))
    for i = 1, nq do
      local cooldown, open, ends, starts, tail = match(throttles[i] or '', '^(%d+) (%d) (%d+) (%S+)(.*)$')
      if cooldown then
        queues[i].throttle = { cooldown = tonumber(cooldown), open = open == '1', ends = tonumber(ends),
          starts = parse_groups(starts), tail = tail, stored = true, was_open = open == '1' }
      end
      queues[i].lane, queues[i].order = lanes[i], orders[i] or nil
    end
  end
end

-- allow lets a script run while memory is full. Redis then refuses commands that may take more memory, but only until a script has
-- written for the first time. So a script that frees memory in the end begins with allow(); one that must be refused whole begins
-- with a write that Redis refuses. The reply is written anew in the end.
local function allow() call('DEL', REPLY) end

-- add_counter adds n to a counter of a topic; close writes it.
local function add_counter(t, field, n) t.plus[field] = (t.plus[field] or 0) + n end

-- queue_name returns the name of a record's queue, '' if it is lost.
local function queue_name(rec)
  local name = rec and #rec >= 18 and call('HGET', NAMES, queue_number(rec))
  return name and string.match(name, '^[^/]*/[^/]*/[^/]*$') or ''
end
