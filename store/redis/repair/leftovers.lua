-- Removes what is left of jobs that do not exist.
-- KEYS    1 jobs  2 runs, attempts or ids  3 forget
-- ARGV    cursor, ids when key 2 is that
-- result  next cursor ('0' at the end), how many were removed, some of their members
-- The id of a job that ended is remembered: it is forgotten when its window has passed.
call('ZREM', KEYS[3], '') -- a first write that is allowed while memory is full, see keys.lua
local found, removed, examples = call('HSCAN', KEYS[2], ARGV[1], 'COUNT', 256), 0, {}
for i = 1, #found[2], 2 do
  local member, value = found[2][i], found[2][i + 1]
  if call('HEXISTS', KEYS[1], member) == 0 then
    local forget
    if ARGV[2] == 'ids' then
      forget = string.match(string.sub(value, 2 + (string.byte(value, 1) or 0)), '^%S %d+ %S+ (%d+)')
    end
    if not forget then
      call('HDEL', KEYS[2], member)
    elseif call('ZSCORE', KEYS[3], member) then
      member = nil
    else
      call('ZADD', KEYS[3], forget, member)
    end
    if member then
      removed = removed + 1
      if #examples < 5 then examples[#examples + 1] = member end
    end
  end
end
return { found[1], removed, examples }
