-- Moves the leases and throttles of queues by the last step of the clock, each once, and updates their agenda.
--
-- KEYS    those of keys.lua; clock, stale agenda, stale throttle_queue
-- ARGV    most leases, then numbers that have no queue
-- result  how many entries are left
local CLOCK, STALE, STALE_THROTTLES = KEYS[K + 1], KEYS[K + 2], KEYS[K + 3]
local room = tonumber(ARGV[A + 1])
allow()
for i = A + 2, #ARGV do
  call('ZREM', STALE, ARGV[i])
  call('ZREM', STALE_THROTTLES, ARGV[i])
end
local steps = steps_after(call('HGET', CLOCK, 'steps'), 0)
local step = steps[#steps] or { by = 0, from = 0 }

-- leases moves the deadlines of claimed jobs, which count from their claims.
local function leases(q)
  local claimed = call('ZRANGE', q.claimed, 0, -1, 'WITHSCORES')
  local deadlines, lines = {}, {}
  for from = 1, #claimed, 1000 do
    local members = {}
    for j = from, math.min(from + 999, #claimed), 2 do members[#members + 1] = claimed[j] end
    local runs = call('HMGET', RUNS, unpack(members))
    for j, member in ipairs(members) do
      local r = runs[j] and parse_run(runs[j])
      local claimed_at = r and tonumber(r.finished)
      local at = claimed_at and rescore_time(claimed_at, step, now)
      if at ~= claimed_at then
        local n = #lines
        deadlines[n + 1], deadlines[n + 2] = int(tonumber(claimed[from + j * 2 - 1]) + at - claimed_at), member
        r.finished = int(at)
        lines[n + 1], lines[n + 2] = member, format_run(r)
      end
    end
  end
  call_in_chunks('ZADD', q.claimed, deadlines)
  call_in_chunks('HSET', RUNS, lines)
  room = room - #claimed / 2
end

for _, q in ipairs(queues) do
  if room < 0 then break end
  if call('ZREM', STALE, q.n) + call('ZREM', STALE_THROTTLES, q.n) > 0 then
    leases(q)
    local throttle = q.throttle
    if throttle then
      rescore_starts(throttle.starts, step, now)
      if throttle.cooldown > 0 then
        local began = tonumber(match(throttle.tail, '^ (%d+)') or now)
        local at = rescore_time(began, step, now)
        throttle.cooldown = math.max(0, throttle.cooldown + at - began)
        set_cooldown_start(throttle, int(at))
      end
      throttle.changed = true
    end
    update_agenda(q)
  end
end
return call('ZCARD', STALE) + call('ZCARD', STALE_THROTTLES)
