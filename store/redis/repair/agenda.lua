-- Removes queues from the agenda without a name: they cannot be processed.
-- KEYS    1 agenda  2 names  3 last_wakeups
-- ARGV    cursor
-- result  next cursor ('0' at the end), the numbers that were removed
local found, removed = call('ZSCAN', KEYS[1], ARGV[1], 'COUNT', 256), {}
for i = 1, #found[2], 2 do
  if call('HEXISTS', KEYS[2], found[2][i]) == 0 then
    call('ZREM', KEYS[1], found[2][i])
    call('HDEL', KEYS[3], found[2][i])
    removed[#removed + 1] = found[2][i]
  end
end
return { found[1], removed }
