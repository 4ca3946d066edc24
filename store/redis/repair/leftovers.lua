-- Removes what is left of jobs that do not exist.
-- KEYS    1 jobs  2 runs, attempts, ids or ttl  3 forget
-- ARGV    cursor, ids or ttl when key 2 is that
-- result  next cursor ('0' at the end), the members that were removed
-- The id of a job that ended is remembered: it is forgotten when its window has passed.
call('ZREM', KEYS[3], '') -- a first write that is allowed while memory is full, see keys.lua
local scan, remove = 'HSCAN', 'HDEL'
if ARGV[2] == 'ttl' then scan, remove = 'ZSCAN', 'ZREM' end
local found, removed = call(scan, KEYS[2], ARGV[1], 'COUNT', 256), {}
for i = 1, #found[2], 2 do
  local member, value = found[2][i], found[2][i + 1]
  if call('HEXISTS', KEYS[1], member) == 0 then
    local forget
    if ARGV[2] == 'ids' then
      forget = string.match(string.sub(value, 2 + (string.byte(value, 1) or 0)), '^%S %d+ %S+ (%d+)')
    end
    if not forget then
      call(remove, KEYS[2], member)
    elseif call('ZSCORE', KEYS[3], member) then
      member = nil
    else
      call('ZADD', KEYS[3], forget, member)
    end
    removed[#removed + 1] = member
  end
end
return { found[1], removed }
