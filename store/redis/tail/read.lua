-- Announces a reader of the tail, and reads messages.
-- KEYS    1 tail  2 tail_readers
-- ARGV    the reader, the position after which to read (0: read nothing), how long readers stay in ms, how many messages to read
-- result  at position 0 the position of the last message; else messages, each after its position and a space
local gone = call('ZRANGEBYSCORE', KEYS[2], '-inf', NOW, 'LIMIT', 0, 256)
if #gone > 0 then call('ZREM', KEYS[2], unpack(gone)) end
call('ZADD', KEYS[2], int(now + tonumber(ARGV[3])), ARGV[1])
call('PEXPIRE', KEYS[2], ARGV[3])
local last = math.max(tonumber(match(call('ZRANGE', KEYS[1], -1, -1)[1] or '0', '^%d+')), now * 1000 - 1)
if ARGV[2] == '0' then return int(last) end
local after = '(' .. ARGV[2]
if tonumber(ARGV[2]) > last then after = '-inf' end -- the clock was set back while there were no messages
return call('ZRANGEBYSCORE', KEYS[1], after, '+inf', 'LIMIT', 0, ARGV[4])
