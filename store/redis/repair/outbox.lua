-- Checks that outbox and outbox_queue have the same entries.
-- KEYS    1 outbox  2 outbox_queue
-- ARGV    cursor in outbox ('' when all of it is checked), rank in outbox_queue to continue at
-- result  next cursor ('' at the end), next rank (-1 at the end), entries added to and removed from outbox_queue
call('ZREM', KEYS[2], '') -- a first write that is allowed while memory is full, see keys.lua
local cursor, rank, added, removed = ARGV[1], tonumber(ARGV[2]), 0, 0
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
  local members = call('ZRANGE', KEYS[2], rank, rank + 255)
  for _, member in ipairs(members) do
    if call('HEXISTS', KEYS[1], member) == 0 then
      call('ZREM', KEYS[2], member)
      removed = removed + 1
    end
  end
  rank = #members < 256 and -1 or rank + 256 - removed
end
return { cursor, rank, added, removed }
