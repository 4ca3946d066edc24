-- Gives new queues numbers, and never the same one twice.
-- KEYS    1 queues  2 names  3 topics  4 last_number  then for each queue: topic_lanes:<topic>
-- ARGV    for each queue: its name, its topic's name, its lane
-- result  the numbers, in order
local numbers, given = {}, 0
local last = math.max(call('HLEN', KEYS[2]), tonumber(call('GET', KEYS[4]) or 0))
for i = 1, #KEYS - 4 do
  local name, topic, lane = ARGV[i * 3 - 2], ARGV[i * 3 - 1], ARGV[i * 3]
  local n = call('HGET', KEYS[1], name)
  if not n then
    repeat
      last = last + 1
      n = int(last)
    until call('HEXISTS', KEYS[2], n) == 0
    call('HSET', KEYS[2], n, name)
    call('ZADD', KEYS[3], 0, topic)
    call('ZADD', KEYS[4 + i], 0, lane .. '\0' .. n)
    call('HSET', KEYS[1], name, n)
    given = given + 1
  end
  numbers[i] = n
end
if given > 0 then call('SET', KEYS[4], int(last)) end
return numbers
