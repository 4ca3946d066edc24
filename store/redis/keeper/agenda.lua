-- Reads what the carrier has to process. Changes nothing but the last reading of the clock.
-- KEYS    those of keys.lua; clock, stale agenda, stale throttle_queue
-- ARGV    most queues, 1 unless lease expiry is deferred, the process that stores its reading of the clock ('' none)
-- result  now, ms of the agenda's head ('' when it is empty), size of the outbox, head of recheck ('' none),
--         {numbers of the queues whose moment has come, whose throttle is over, or whose lease expiry was deferred}, 1 when the call
--         is a repeat, the stored reading of the clock, the process that stored it, epoch, {numbers of queues that were
--         scored before the last step of the clock}
local first = call('ZRANGE', AGENDA, 0, 0, 'WITHSCORES')
local numbers = call('ZRANGEBYSCORE', AGENDA, '-inf', int(now), 'LIMIT', 0, ARGV[A + 1])
for _, n in ipairs(call('ZRANGEBYSCORE', THROTTLE_QUEUE, '-inf', NOW, 'LIMIT', 0, ARGV[A + 1])) do
  numbers[#numbers + 1] = n
end
if ARGV[A + 2] == '1' then
  for _, n in ipairs(call('ZRANGE', DEFERRED, 0, tonumber(ARGV[A + 1]) - 1)) do numbers[#numbers + 1] = n end
end
local CLOCK, STALE, STALE_THROTTLES = KEYS[K + 1], KEYS[K + 2], KEYS[K + 3]
local noted, by, epoch = unpack(call('HMGET', CLOCK, 'reading', 'by', 'epoch'))
local stale = {}
if call('EXISTS', STALE, STALE_THROTTLES) > 0 then
  for _, key in ipairs({ STALE, STALE_THROTTLES }) do
    for _, n in ipairs(call('ZRANGE', key, 0, tonumber(ARGV[A + 1]) - 1)) do stale[#stale + 1] = n end
  end
end
local again = call('EXISTS', REPLY)
-- A reading in the future stays: it shows that the clock was set back.
if ARGV[A + 3] ~= '' and tonumber(noted or 0) <= now then
  call('ZREM', STALE, '') -- a first write that is allowed while memory is full, see keys.lua
  call('HSET', CLOCK, 'reading', NOW, 'by', ARGV[A + 3])
end
return { int(now), first[2] or '', call('ZCARD', OUTBOX_QUEUE), call('ZRANGE', RECHECK, 0, 0)[1] or '', numbers, again,
  noted or '0', by or '', epoch or '0', stale }
