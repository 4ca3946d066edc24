-- Records a step of the clock, and sets aside the scores from before it for rescore.lua.
-- KEYS    those of keys.lua; clock, stale agenda, stale throttle_queue
-- ARGV    epoch that the caller knows, its process, how far the clock was set in ms, from (see clock_steps.lua)
-- result  1, or 0 when another epoch has begun or the last one is still being rescored
-- Setting aside is a rename, so it costs the same for any number of queues.
local CLOCK, STALE, STALE_THROTTLES = KEYS[K + 1], KEYS[K + 2], KEYS[K + 3]
local KEPT = 8
local epoch = call('HGET', CLOCK, 'epoch') or '0'
if epoch ~= ARGV[A + 1] or call('EXISTS', STALE, STALE_THROTTLES) > 0 then return 0 end
allow()
epoch = increment(epoch)
local steps = (call('HGET', CLOCK, 'steps') or '') .. epoch .. ':' .. ARGV[A + 3] .. ':' .. ARGV[A + 4] .. ','
while select(2, string.gsub(steps, ',', ',')) > KEPT do steps = string.gsub(steps, '^[^,]*,', '') end
local ahead = math.max(tonumber(call('HGET', CLOCK, 'ahead') or 0), now - tonumber(ARGV[A + 3])) -- what it has shown
call('HSET', CLOCK, 'epoch', epoch, 'steps', steps, 'reading', NOW, 'by', ARGV[A + 2], 'ahead', int(ahead))
if call('EXISTS', AGENDA) == 1 then call('RENAME', AGENDA, STALE) end
if call('EXISTS', THROTTLE_QUEUE) == 1 then call('RENAME', THROTTLE_QUEUE, STALE_THROTTLES) end
return 1
