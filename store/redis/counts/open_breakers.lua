-- Counts the lanes of topics whose breaker is open. Changes nothing.
-- KEYS    open:<topic> of each
-- ARGV    none
-- result  how many, in order
local counts = {}
for i, key in ipairs(KEYS) do counts[i] = call('ZCOUNT', key, NOW, '+inf') end
return counts
