-- enqueue writes a new job to the outbox, after all that are there, and wakes who brings it home. Those of one millisecond are
-- told apart by parts of it.
local born
local function enqueue(member, entry)
  if call('HSETNX', OUTBOX, member, entry) == 0 then return end
  if not born then
    local last = call('ZRANGE', OUTQ, -1, -1, 'WITHSCORES')[2]
    born = last and tonumber(last) or 0
  end
  born = math.max(now, born + 0.001)
  call('ZADD', OUTQ, string.format('%.3f', born), member)
  early = true
end
