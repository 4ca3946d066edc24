-- Reads the gates of queues. Changes nothing.
-- KEYS    1 gates
-- ARGV    queue numbers
-- result  now, gates ('' none)
local gates = {}
if call('EXISTS', KEYS[1]) == 1 then gates = call('HMGET', KEYS[1], unpack(ARGV)) end
for i = 1, #ARGV do gates[i] = gates[i] or '' end
return { NOW, gates }
