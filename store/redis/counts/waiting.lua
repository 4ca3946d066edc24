-- Counts the jobs of queues that are due and not in a ready list. Changes nothing.
-- KEYS    1 stats:<topic>, then due:<q> of each queue
-- ARGV    none
-- result  {counters and values}, then for each queue: how many
local result = { call('HGETALL', KEYS[1]) }
for i = 2, #KEYS do result[i] = call('ZCOUNT', KEYS[i], '-inf', NOW) end
return result
