-- The first field of limits is 1 for a pause, 2 for an ordered queue, 3 for both.
-- topic_limits returns a topic's limits without those of retention. starts is nil without a rate. deliver is 0 for push, 1 for
-- pull, 2 for handlers: the topic's wake-ups are in KEYS[t.wakeups + deliver].
local function topic_limits(t)
  if not t.limits then
    t.line = call('HGET', LIMITS, t.name) or ARGV[3]
    local paused, limit, starts, per, deliver = match(t.line,
      '^%d+ (%d) (%d+) %d+ %d+ %d+ %d+ %d+ %d+ %d+ (%d+) (%d+) (%d)')
    t.limits = { paused = paused % 2 == 1, ordered = paused >= '2', limit = tonumber(limit), deliver = tonumber(deliver) }
    if t.limits.ordered then t.limits.limit = 1 end
    if starts ~= '0' then t.limits.starts, t.limits.per = tonumber(starts), tonumber(per) end
  end
  return t.limits
end
local function retention_limits(t)
  if not t.keeps then
    topic_limits(t)
    local dage, dmax, dbytes, xage, xmax, xbytes, window = match(t.line,
      '^%d+ %d %d+ (%d+) (%d+) (%d+) (%d+) (%d+) (%d+) (%d+)')
    t.keeps = { window = tonumber(window),
      d = { age = tonumber(dage), max = tonumber(dmax), bytes = tonumber(dbytes) },
      x = { age = tonumber(xage), max = tonumber(xmax), bytes = tonumber(xbytes) } }
    t.keeps.c = t.keeps.d
  end
  return t.keeps
end

-- limits returns a queue's limits: those of its lane's settings over its topic's.
local function limits(q)
  local k = topic_limits(q.topic)
  if not q.lane then return k end
  if not q.limits then
    local paused, limit, starts, per = match(q.lane, '^%d+ (%d) (%d+) (%d+) (%d+)')
    q.limits = { paused = k.paused or paused % 2 == 1, ordered = k.ordered or paused >= '2', limit = limit ~= '0' and tonumber(limit) or k.limit,
      starts = k.starts, per = k.per }
    if q.limits.ordered then q.limits.limit = 1 end
    if starts ~= '0' then q.limits.starts, q.limits.per = tonumber(starts), tonumber(per) end
  end
  return q.limits
end
