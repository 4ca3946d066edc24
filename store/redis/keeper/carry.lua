-- Makes one round: expires leases, moves due jobs to ready, writes wake-ups, reads and removes outbox entries.
-- KEYS    those of keys.lua
-- ARGV    most jobs, bound of ready, latest deadline that may expire in ms (-1 none, '' now), most outbox entries,
--         done member of recheck ('' none), its successor ('' none), outbox entries to pass over, most bytes of the others,
--         how many numbers have no queue, those, then members of the outbox that were relayed
-- result  now, moved, expired leases, ms until the agenda's head (-1 empty), {outbox: member, entry}, size of the outbox
local most, bound, line = tonumber(ARGV[A + 1]), tonumber(ARGV[A + 2]), ARGV[A + 3]
local upto = line == '' and now or math.min(now, tonumber(line))
local moved, expired, budget = 0, 0, most

-- expire_leases moves jobs whose lease has expired back to due, or ends them if they were cancelled.
local function expire_leases(q)
  if upto < 0 or budget <= 0 then return end
  local members = call('ZRANGEBYSCORE', q.claimed, '-inf', int(upto), 'LIMIT', 0, budget)
  if #members == 0 then return end
  local runs, lines = call('HMGET', RUNS, unpack(members)), {}
  for i, member in ipairs(members) do
    local r = runs[i] and parse_run(runs[i])
    if r and r.state == '-' then -- a crash of Redis may have left an ended one here
      local owner = sub(r.lease, 1, OWNER_SIZE)
      r.attempts, r.lost, r.lease = increment(r.attempts), increment(r.lost), '-'
      if tonumber(r.lost) > FREE_LOSSES then r.failed = increment(r.failed) end
      add_attempt(r, member, '{"n":' .. r.attempts .. ',"k":"lost","ms":' .. r.finished .. ',"d":' ..
        int(math.max(0, now - r.finished) * MS_UNITS) .. ',"pr":"' .. owner .. '"}\n')
      r.finished = '0'
      local kept = true
      if has_flag(r, 'm') then
        kept = end_job(q, member, r, 'c', 'cancelled')
      else
        r.schedule = reschedule(r.schedule, NOW)
        add_due(q, NOW, member)
      end
      if kept then
        lines[#lines + 1] = member
        lines[#lines + 1] = format_run(r)
      end
    end
  end
  call_in_chunks('HSET', RUNS, lines)
  write_placed(q)
  call('ZREM', q.claimed, unpack(members))
  q.claimed_count = nil
  add_counter(q.topic, 'claimed', -#members)
  expired, budget = expired + #members, budget - #members
end

-- fill moves due jobs to ready, up to its bound.
local function fill(q, ready)
  local want = math.min(budget, bound - ready)
  if want <= 0 then return 0 end
  local due = call('ZRANGEBYSCORE', q.due, '-inf', int(now), 'LIMIT', 0, want)
  if #due == 0 then return 0 end
  call('RPUSH', q.ready, unpack(due))
  call('ZREM', q.due, unpack(due))
  add_counter(q.topic, 'ready', #due)
  moved, budget = moved + #due, budget - #due
  return #due
end

local again = call('GET', REPLY)
if again then
  moved, expired = string.match(again, '^(%d+) (%d+)')
else
  allow()
  local relayed, none = {}, A + 9 + tonumber(ARGV[A + 9])
  for i = none + 1, #ARGV do relayed[#relayed + 1] = ARGV[i] end
  local deferring, throttled, gone = call('EXISTS', DEFERRED) == 1, call('EXISTS', THROTTLE_QUEUE) == 1, {}
  for i = A + 10, none do
    gone[#gone + 1] = ARGV[i]
    if call('HEXISTS', NAMES, ARGV[i]) == 0 then -- it cannot be processed
      call('ZREM', AGENDA, ARGV[i])
      call('ZREM', DEFERRED, ARGV[i])
    end
  end
  call_in_chunks('HDEL', OUTBOX, relayed)
  call_in_chunks('ZREM', OUTBOX_QUEUE, relayed)
  for _, q in ipairs(queues) do
    -- Every queue is processed, also when the round has moved all it may: after a change of policy a queue may have no score on
    -- the agenda until then.
    local before = expired
    local full = capacity(q) <= 0
    expire_leases(q)
    if capacity(q) > 0 and order.on(q) then
      q.notify = order.advance(q) -- the carrier comes only when the queue may have a job to claim
    elseif capacity(q) > 0 then
      local ready = call('LLEN', q.ready)
      local came = fill(q, ready)
      if (ready == 0 and came > 0) or (full and expired > before) then
        q.notify = true
      elseif ready + came > 0 then
        local last = tonumber(call('HGET', LAST_WAKEUPS, q.n) or 0)
        q.notify = last + RENOTIFY <= now or last > now
      end
    end
    local hold = upto < now
    q.idle = true
    update_agenda(q, hold and now + 100 or nil)
    if q.deferred then call('ZADD', DEFERRED, int(now), q.n) elseif deferring then call('ZREM', DEFERRED, q.n) end
    if throttled and not q.throttle then gone[#gone + 1] = q.n end
  end
  call_in_chunks('ZREM', THROTTLE_QUEUE, gone)
  for _, t in ipairs(topics) do apply_retention(t) end
  if ARGV[A + 6] ~= '' then call('ZADD', RECHECK, int(now), ARGV[A + 6]) end
  if ARGV[A + 5] ~= '' and ARGV[A + 5] ~= ARGV[A + 6] then call('ZREM', RECHECK, ARGV[A + 5]) end
  close()
  call('SET', REPLY, moved .. ' ' .. expired, 'EX', REPLY_TTL)
end

local skip, room = tonumber(ARGV[A + 7]), tonumber(ARGV[A + 8])
local outbox = {}
for _, member in ipairs(call('ZRANGE', OUTBOX_QUEUE, int(skip), int(skip + tonumber(ARGV[A + 4]) - 1))) do
  local entry = call('HGET', OUTBOX, member) or ''
  room = room - #entry
  if room < 0 and #outbox > 0 then break end
  outbox[#outbox + 1] = member
  outbox[#outbox + 1] = entry
end
-- late reports whether throttles that are over were left to another round.
local function late()
  local seen = {}
  for _, q in ipairs(queues) do seen[q.n] = not again end
  for _, n in ipairs(call('ZRANGEBYSCORE', THROTTLE_QUEUE, '-inf', NOW, 'LIMIT', 0, nq + 1)) do
    if not seen[n] then return true end
  end
  return false
end
local first = call('ZRANGE', AGENDA, 0, 0, 'WITHSCORES')[2]
local wait = -1
if call('ZCARD', RECHECK) > 0 or late() then
  wait = 0
elseif first and tonumber(first) < NEVER then
  wait = math.max(0, tonumber(first) - now)
end
return { int(now), tostring(moved), tostring(expired), int(wait), outbox, call('ZCARD', OUTBOX_QUEUE) }
