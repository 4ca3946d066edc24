-- Writes a document that applies to all shards, or removes it.
-- KEYS    1 the documents of its kind  2 reply of the call's token  3 the changes of its kind
-- ARGV    name, the revision that must be stored (0 any, -1 none), 'limits value' ('' removes it), how many changes are kept
-- result  the document's new revision (0 removed; ! the stored one is another), a space, that of the kind
-- The stored form is '<revision> <limits> <value>'; the field '' holds the newest revision of the kind. It follows the clock,
-- so that it grows also after a failover that rolled documents back.
local again = call('GET', KEYS[2])
if again then return again end
local stored = call('HGET', KEYS[1], ARGV[1])
local newest = tonumber(call('HGET', KEYS[1], '') or 0)
local new, all = '!', int(newest)
if ARGV[2] == '0' or (ARGV[2] == '-1' and '0' or ARGV[2]) == (stored and match(stored, '^%d+') or '0') then
  all = int(math.max(newest + 1, now))
  log_change(KEYS[3], all, ARGV[1], ARGV[3] == '', ARGV[4])
  if ARGV[3] ~= '' then
    new = all
    call('HSET', KEYS[1], ARGV[1], new .. ' ' .. ARGV[3], '', all)
  else
    new = '0'
    call('HDEL', KEYS[1], ARGV[1])
    call('HSET', KEYS[1], '', all)
  end
end
call('SET', KEYS[2], new .. ' ' .. all, 'EX', REPLY_TTL)
return new .. ' ' .. all
