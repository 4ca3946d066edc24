-- Counts the jobs of queues that are due and not in a ready list. Changes nothing.
-- KEYS    1 stats:<topic>, then due:<q> of each queue
-- ARGV    none
-- result  {counters and values}, {for each queue: how many}
local call = redis.call
local clock, counts = call('TIME'), {}
local now = string.format('%.0f', tonumber(clock[1]) * 1000 + math.floor(tonumber(clock[2]) / 1000))
for i = 2, #KEYS do counts[i - 1] = call('ZCOUNT', KEYS[i], '-inf', now) end
return { call('HGETALL', KEYS[1]), counts }
