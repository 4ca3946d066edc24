-- Copies what scripts need of topics' policies to a shard.
-- KEYS    1 limits  2 recheck  3 carrier_wakeup
-- ARGV    revision of all; the revision that the shard has and the policies have lost ('' for none): then what is copied
--         counts, whatever its revision; then for each topic: its name, its limits (beginning with the topic's revision)
-- result  how many changed, -1 when the shard has another revision than the lost one
call('ZREM', KEYS[2], '') -- no such member: a first write that is allowed while memory is full, see keys.lua
local changed, stored = 0, call('HGET', KEYS[1], '') or '0'
local back = ARGV[2] ~= ''
if back and stored ~= ARGV[2] then return -1 end
for i = 3, #ARGV, 2 do
  local old = call('HGET', KEYS[1], ARGV[i])
  local new = ARGV[i + 1]
  if old ~= new and
      (back or not old or tonumber(string.match(old, '^%d+')) <= tonumber(string.match(new, '^%d+'))) then
    call('HSET', KEYS[1], ARGV[i], new)
    call('ZADD', KEYS[2], 0, ARGV[i] .. '\0')
    changed = changed + 1
  end
end
if not back and tonumber(stored) < tonumber(ARGV[1]) or back and ARGV[1] ~= '' then
  call('HSET', KEYS[1], '', ARGV[1])
end
if changed > 0 and call('LLEN', KEYS[3]) == 0 then call('RPUSH', KEYS[3], '1') end
return changed
