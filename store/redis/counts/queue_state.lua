-- Reads the state of a queue. Changes nothing.
-- KEYS    those of keys.lua, with the queue; then the carrier's lock
-- ARGV    none
-- result  jobs in due, those of them that are due, in ready, claimed; the end of the cooldown (0 none), 1 while the breaker is open,
--         when the rate allows the next start (0 now), 1 while the carrier's lock is held, the next job of an ordered queue ('' none), the cooldown's cause,
--         the health ('' none)
local q, free_at, cooldown, open, cause = queues[1], 0, 0, 0, 'a'
local claimed = count_claimed(q)
capacity(q) -- closes a breaker that was not probed, in memory
if q.throttle then
  local throttle, effective = q.throttle, limits(q)
  if throttle.cooldown > now then cooldown, cause = throttle.cooldown, cooldown_cause(throttle) end
  if throttle.open then open = 1 end
  if effective.starts then
    local list, n = count_window(throttle.starts, effective.per, now)
    if n >= effective.starts then free_at = next_start(list, n, effective.starts, effective.per) end
  end
end
local next = ''
if limits(q).ordered then
  next = call('ZRANGE', q.claimed, 0, 0)[1] or q.order and call('ZRANGEBYSCORE', q.ordered, '(0', '+inf', 'LIMIT', 0, 1)[1] or ''
end
return { call('ZCARD', q.due), call('ZCOUNT', q.due, '-inf', NOW), call('LLEN', q.ready), claimed, int(cooldown), open, int(free_at),
  call('EXISTS', KEYS[K + 1]), next, cause, call('HGET', HEALTH, q.n) or '' }
