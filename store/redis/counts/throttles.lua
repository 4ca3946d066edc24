-- Reads the throttles of queues. Changes nothing.
-- KEYS    1 throttles
-- ARGV    queue numbers
-- result  now, throttles ('' none)
local throttles = {}
if call('EXISTS', KEYS[1]) == 1 then throttles = call('HMGET', KEYS[1], unpack(ARGV)) end
for i = 1, #ARGV do throttles[i] = throttles[i] or '' end
return { NOW, throttles }
