-- Reads the gates of queues. Changes nothing.
-- KEYS    1 gates
-- ARGV    queue numbers
-- result  now, gates ('' none)
local call = redis.call
local gates = {}
if call('EXISTS', KEYS[1]) == 1 then gates = call('HMGET', KEYS[1], unpack(ARGV)) end
for i = 1, #ARGV do gates[i] = gates[i] or '' end
local clock = call('TIME')
return { string.format('%.0f', tonumber(clock[1]) * 1000 + math.floor(tonumber(clock[2]) / 1000)), gates }
