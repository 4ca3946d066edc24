-- Reads the throttles of queues. Changes nothing.
-- KEYS    1 throttles
-- ARGV    queue numbers
-- result  now, then for each queue: its throttle ('' none)
local throttles, result = {}, { NOW }
if call('EXISTS', KEYS[1]) == 1 then throttles = call('HMGET', KEYS[1], unpack(ARGV)) end
for i = 1, #ARGV do result[i + 1] = throttles[i] or '' end
return result
