-- Reads lanes of topics, in order. Changes nothing.
-- KEYS    topic_lanes of topics
-- ARGV    most, least member of the first topic, least and greatest of the others (as ZRANGEBYLEX takes them)
-- result  for each of the first topics, as many as most allows: its lanes
local left, result = tonumber(ARGV[1]), {}
for i, key in ipairs(KEYS) do
  result[i] = call('ZRANGEBYLEX', key, i == 1 and ARGV[2] or ARGV[3], ARGV[4], 'LIMIT', 0, left)
  left = left - #result[i]
  if left == 0 then break end
end
return result
