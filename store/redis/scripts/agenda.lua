-- Reads what the carrier has to look at. Changes nothing.
-- KEYS    those of lib
-- ARGV    most queues
-- result  now, ms of the agenda's head ('' when it is empty), size of the outbox, head of redo ('' none),
--         {numbers of the queues whose moment has come}
local first = call('ZRANGE', AGENDA, 0, 0, 'WITHSCORES')
return { int(now), first[2] or '', call('ZCARD', OUTQ), call('ZRANGE', REDO, 0, 0)[1] or '',
  call('ZRANGEBYSCORE', AGENDA, '-inf', int(now), 'LIMIT', 0, ARGV[A + 1]) }
