-- Records whether a topic's alarm is raised, and writes the new jobs of a change to the outbox.
-- KEYS    those of keys.lua; alarms
-- ARGV    topic's name, 1 raised or 0 over, then for each new job: member, entry
-- result  1 when that is a change
local ALARMS = KEYS[K + 1]
local again = call('GET', REPLY)
if again then return again end
local change = call('HEXISTS', ALARMS, ARGV[A + 1]) ~= tonumber(ARGV[A + 2])
if change then
  -- The new jobs are the first write: refused, and nothing done, while memory is full.
  for i = A + 3, #ARGV, 2 do enqueue(ARGV[i], ARGV[i + 1]) end
  if ARGV[A + 2] == '1' then call('HSET', ALARMS, ARGV[A + 1], NOW) else call('HDEL', ALARMS, ARGV[A + 1]) end
end
close()
call('SET', REPLY, change and '1' or '0', 'EX', REPLY_TTL)
return change and '1' or '0'
