-- Deletes lanes of a topic that nothing refers to, and the topic if nothing refers to it any more.
-- KEYS    1 queues  2 names  3 topics  4 agenda  5 last_wakeups  6 throttles  7 lane_limits  8 limits  9 alarms  10 clock
--         11 topic_lanes:<topic>  12 configured_lanes:<topic>  13 rate:<topic>  14 open:<topic>  15 stats:<topic>
--         16 done  17 dead  18 cancelled  19 stats of the forgotten  20 stale agenda  21 stale throttle_queue  22 owners
--         23 ordered  24 health  25 unhealthy:<namespace>; then for each lane: due, ready, claimed, ordered
-- ARGV    topic's name, 1 to keep the topic; then for each lane: its number, its name, its lane
-- result  how many lanes were forgotten, 1 when the topic was
-- update_agenda writes when a lane had its last unfinished job, as a negative entry in last_wakeups. Records of jobs that ended
-- before name their lane by its number. They are all deleted when the oldest kept job of the topic ended later. The clock may have
-- been set back in between: by less than MARGIN, or further; then what it showed before (ahead) counts as well. A lane on the agenda
-- is still to be processed: its entry in last_wakeups may be old.
local MARGIN = 600000
call('ZREM', KEYS[3], '') -- no such member: a first write that is allowed while memory is full, see keys.lua
-- Until all queues are rescored after a step of the clock, the agenda does not have all of those to be processed.
if call('EXISTS', KEYS[20], KEYS[21]) > 0 then return { 0, 0 } end
local oldest
for k = 16, 18 do
  local first = call('ZRANGE', KEYS[k], 0, 0, 'WITHSCORES')[2]
  if first then oldest = math.min(oldest or tonumber(first), tonumber(first)) end
end
local ahead = tonumber(call('HGET', KEYS[10], 'ahead') or 0)

-- has_health reports whether the health of a lane is known: see policy.Health.Known.
local function has_health(n)
  local last = match(call('HGET', KEYS[24], n) or '', '^%d+ %d+ %d+ %d+ (%d+)')
  return last and now - last <= HEALTH_KNOWN
end

local forgotten = 0
for i = 1, (#KEYS - 25) / 4 do
  local k, n, name, lane = 22 + i * 4, ARGV[i * 3], ARGV[i * 3 + 1], ARGV[i * 3 + 2]
  if call('HGET', KEYS[2], n) == name and call('EXISTS', KEYS[k], KEYS[k + 1], KEYS[k + 2]) == 0 and
      call('HEXISTS', KEYS[6], n) == 0 and call('HEXISTS', KEYS[7], name) == 0 and not call('ZSCORE', KEYS[4], n) and
      not has_health(n) then
    local idle = -tonumber(call('HGET', KEYS[5], n) or 0)
    if idle <= 0 and oldest then
      call('HSET', KEYS[5], n, '-' .. NOW) -- it never had a job
    elseif not oldest or oldest > math.max(idle, ahead) + MARGIN then
      -- Its name goes last, so that the check restores the lane after a crash of Redis in between.
      call('ZREM', KEYS[11], lane .. '\0' .. n)
      call('HDEL', KEYS[5], n)
      call('HDEL', KEYS[22], n)
      call('HDEL', KEYS[23], n)
      call('HDEL', KEYS[24], n)
      call('ZREM', KEYS[25], n)
      call('DEL', KEYS[k + 3])
      if call('HGET', KEYS[1], name) == n then call('HDEL', KEYS[1], name) end
      call('HDEL', KEYS[2], n)
      forgotten = forgotten + 1
    end
  end
end

if ARGV[2] == '1' or oldest or call('EXISTS', KEYS[11], KEYS[12], KEYS[13], KEYS[14]) > 0 or call('HEXISTS', KEYS[8], ARGV[1]) == 1 or
    call('HEXISTS', KEYS[9], ARGV[1]) == 1 then
  return { forgotten, 0 }
end
local counts = call('HMGET', KEYS[15], 'reg', 'd', 'x', 'c', 'ready', 'claimed')
for i = 1, 6 do counts[i] = tonumber(counts[i] or 0) end
if counts[1] ~= counts[2] + counts[3] + counts[4] or counts[5] ~= 0 or counts[6] ~= 0 then
  return { forgotten, 0 } -- the check must repair it first
end
-- If moved names the topic, its counters were added before a crash of Redis that left the rest undone.
local sums = call('HMGET', KEYS[19], 'reg', 'd', 'x', 'c', 'moved')
if sums[5] ~= ARGV[1] then
  for i = 1, 4 do sums[i] = int((sums[i] or 0) + counts[i]) end
  call('HSET', KEYS[19], 'reg', sums[1], 'd', sums[2], 'x', sums[3], 'c', sums[4], 'moved', ARGV[1])
end
call('DEL', KEYS[15])
call('ZREM', KEYS[3], ARGV[1])
call('HDEL', KEYS[19], 'moved')
return { forgotten, 1 }
