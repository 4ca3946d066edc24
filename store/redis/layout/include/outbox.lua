-- enqueue appends a new job to the outbox and wakes the carrier. Jobs of one millisecond are ordered by fractions of it.
local newest
local function enqueue(member, entry)
  if call('HSETNX', OUTBOX, member, entry) == 0 then return end
  if not newest then
    local last = call('ZRANGE', OUTBOX_QUEUE, -1, -1, 'WITHSCORES')[2]
    newest = last and tonumber(last) or 0
  end
  newest = math.max(now, newest + 0.001)
  call('ZADD', OUTBOX_QUEUE, string.format('%.3f', newest), member)
  early = true
end
