-- Appends a message to the tail, if there are readers.
-- KEYS    1 tail  2 tail_readers
-- ARGV    the message ('' none), how long messages are kept in ms, how many are kept, how many readers are returned
-- result  the readers that read last
-- A message has its position as score, and before its text. Positions follow the clock, so that they grow also when the
-- key was gone in between.
local readers = call('ZRANGE', KEYS[2], '+inf', '(' .. NOW, 'BYSCORE', 'REV', 'LIMIT', 0, ARGV[4])
if ARGV[1] ~= '' and #readers > 0 then
  local last = match(call('ZRANGE', KEYS[1], -1, -1)[1] or '0', '^%d+')
  local position = int(math.max(tonumber(last) + 1, now * 1000))
  call('ZADD', KEYS[1], position, position .. ' ' .. ARGV[1])
  call('PEXPIRE', KEYS[1], ARGV[2])
  local over = call('ZCARD', KEYS[1]) - tonumber(ARGV[3])
  if over > 0 then call('ZREM', KEYS[1], unpack(call('ZRANGE', KEYS[1], 0, over - 1))) end
end
return readers
