-- Checks that outbox and outbox_queue have the same entries.
-- KEYS    1 outbox  2 outbox_queue
-- ARGV    cursor in outbox ('' when all of it is checked), rank in outbox_queue to continue at
-- result  next cursor ('' at the end), next rank (-1 at the end), entries added to and removed from outbox_queue, entries looked at;
--         of an audit also those that have been there for RELAYED ms
local RELAYED = 600000
call('ZREM', KEYS[2], '') -- a first write that is allowed while memory is full, see keys.lua
local cursor, rank, added, removed, late, looked = ARGV[1], tonumber(ARGV[2]), {}, {}, {}, 0
if cursor ~= '' then
  local found = call('HSCAN', KEYS[1], cursor, 'COUNT', 16)
  for i = 1, #found[2], 2 do
    looked = looked + 1
    if not call('ZSCORE', KEYS[2], found[2][i]) then
      call('ZADD', KEYS[2], NOW, found[2][i])
      added[#added + 1] = found[2][i]
    end
  end
  cursor = found[1] == '0' and '' or found[1]
else
  local before, members = call('ZCARD', KEYS[2]), call('ZRANGE', KEYS[2], rank, rank + 255, 'WITHSCORES')
  for i = 1, #members, 2 do
    if call('HEXISTS', KEYS[1], members[i]) == 0 then
      call('ZREM', KEYS[2], members[i])
      removed[#removed + 1] = members[i]
    elseif auditing and tonumber(members[i + 1]) + RELAYED < now then
      late[#late + 1] = members[i]
    end
  end
  rank = #members < 512 and -1 or rank + 256 - (before - call('ZCARD', KEYS[2]))
end
return { cursor, rank, added, removed, looked, late }
