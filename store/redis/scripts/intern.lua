-- Gives queues their numbers.
-- KEYS    1 queues  2 names  3 seen  then for each queue: lanes:<topic>
-- ARGV    for each queue: its name, its topic's name, its lane
-- result  the numbers, in order
local numbers = {}
local count = redis.call('HLEN', KEYS[2])
for i = 1, #KEYS - 3 do
  local name, topic, lane = ARGV[i * 3 - 2], ARGV[i * 3 - 1], ARGV[i * 3]
  local n = redis.call('HGET', KEYS[1], name)
  if not n then
    count = count + 1
    n = string.format('%.0f', count)
    redis.call('HSET', KEYS[2], n, name)
    redis.call('ZADD', KEYS[3], 0, topic)
    redis.call('ZADD', KEYS[3 + i], 0, lane .. '\0' .. n)
    redis.call('HSET', KEYS[1], name, n)
  end
  numbers[i] = n
end
return numbers
