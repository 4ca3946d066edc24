-- Counts the lanes of topics whose breaker is open. Changes nothing.
-- KEYS    open:<topic> of each
-- ARGV    none
-- result  how many, in order
local clock = redis.call('TIME')
local now = string.format('%.0f', tonumber(clock[1]) * 1000 + math.floor(tonumber(clock[2]) / 1000))
local counts = {}
for i, key in ipairs(KEYS) do counts[i] = redis.call('ZCOUNT', key, now, '+inf') end
return counts
