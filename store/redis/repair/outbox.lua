-- Checks that the outbox's entries stand in its order, and that there is an entry for all that stands there.
-- KEYS    1 outbox  2 outbox_queue
-- ARGV    cursor of the entries ('' they are checked), place in the order to go on at
-- result  next cursor ('' at the end), next place (-1 at the end), entries put in order, places removed
call('ZREM', KEYS[2], '') -- a first write that is allowed while memory is full, see keys.lua
local cursor, place, added, removed = ARGV[1], tonumber(ARGV[2]), 0, 0
if cursor ~= '' then
  local found = call('HSCAN', KEYS[1], cursor, 'COUNT', 16)
  for i = 1, #found[2], 2 do
    if not call('ZSCORE', KEYS[2], found[2][i]) then
      call('ZADD', KEYS[2], NOW, found[2][i])
      added = added + 1
    end
  end
  cursor = found[1] == '0' and '' or found[1]
else
  local members = call('ZRANGE', KEYS[2], place, place + 255)
  for _, member in ipairs(members) do
    if call('HEXISTS', KEYS[1], member) == 0 then
      call('ZREM', KEYS[2], member)
      removed = removed + 1
    end
  end
  place = #members < 256 and -1 or place + 256 - removed
end
return { cursor, place, added, removed }
