-- Checks that queues are known by their number and by their name, and listed under their topics.
-- KEYS    1 queues  2 names  3 topics  then for each queue: topic_lanes:<topic>
-- ARGV    for each queue: its number, its name, its topic's name, its lane
-- result  the names of those that were repaired
-- A number that means another queue, or a queue that has another number, stays as it is.
-- A queue that has neither was forgotten since it was read, and stays so.
local repaired = {}
call('ZREM', KEYS[3], '') -- a first write that is allowed while memory is full, see keys.lua
for i = 1, #KEYS - 3 do
  local n, name, topic, lane = ARGV[i * 4 - 3], ARGV[i * 4 - 2], ARGV[i * 4 - 1], ARGV[i * 4]
  local named, number = call('HGET', KEYS[2], n), call('HGET', KEYS[1], name)
  if (named or number) and (not named or named == name) and (not number or number == n) then
    local changes = call('HSETNX', KEYS[2], n, name) + call('HSETNX', KEYS[1], name, n)
    for key, member in pairs({ [KEYS[3]] = topic, [KEYS[3 + i]] = lane .. '\0' .. n }) do
      if not call('ZSCORE', key, member) then
        call('ZADD', key, 0, member)
        changes = changes + 1
      end
    end
    if changes > 0 then repaired[#repaired + 1] = name end
  end
end
return repaired
