-- Reads what the carrier has to look at. Changes nothing.
-- KEYS    those of lib
-- ARGV    most queues, 1 when lapses are not held off
-- result  now, ms of the agenda's head ('' when it is empty), size of the outbox, head of redo ('' none),
--         {numbers of the queues whose moment has come, whose gate is over, or whose lapses were held off}, 1 when the call
--         is a repeat
local first = call('ZRANGE', AGENDA, 0, 0, 'WITHSCORES')
local numbers = call('ZRANGEBYSCORE', AGENDA, '-inf', int(now), 'LIMIT', 0, ARGV[A + 1])
for _, n in ipairs(call('ZRANGEBYSCORE', GATEQ, '-inf', NOW, 'LIMIT', 0, ARGV[A + 1])) do
  numbers[#numbers + 1] = n
end
if ARGV[A + 2] == '1' then
  for _, n in ipairs(call('ZRANGE', OFF, 0, tonumber(ARGV[A + 1]) - 1)) do numbers[#numbers + 1] = n end
end
return { int(now), first[2] or '', call('ZCARD', OUTQ), call('ZRANGE', REDO, 0, 0)[1] or '', numbers,
  call('EXISTS', TOK) }
