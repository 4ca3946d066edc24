-- Reads the throttles and the health of queues. Changes nothing.
-- KEYS    1 throttles  2 health
-- ARGV    queue numbers
-- result  now, then for each queue: its throttle and its health ('' none)
local throttles, health, result = {}, {}, { NOW }
if call('EXISTS', KEYS[1]) == 1 then throttles = call('HMGET', KEYS[1], unpack(ARGV)) end
if call('EXISTS', KEYS[2]) == 1 then health = call('HMGET', KEYS[2], unpack(ARGV)) end
for i = 1, #ARGV do result[2 * i], result[2 * i + 1] = throttles[i] or '', health[i] or '' end
return result
