-- Counts the jobs of queues that are due and not in a ready list. Changes nothing.
-- KEYS    1 stats:<topic>, then due:<q> of each queue
-- ARGV    none
-- result  {counters and values}, {for each queue: how many}
local counts = {}
for i = 2, #KEYS do counts[i - 1] = call('ZCOUNT', KEYS[i], '-inf', NOW) end
return { call('HGETALL', KEYS[1]), counts }
