-- terms resolves what scripts need of a topic's policy, but for what is kept: that is for keeps. starts is nil where no
-- rate is.
local function terms(t)
  if not t.terms then
    t.line = call('HGET', TERMS, t.name) or ARGV[3]
    local paused, limit, starts, per = match(t.line,
      '^%d+ (%d) (%d+) %d+ %d+ %d+ %d+ %d+ %d+ %d+ ?(%d*) ?(%d*)')
    t.terms = { paused = paused == '1', limit = tonumber(limit) }
    if starts ~= '' and starts ~= '0' then t.terms.starts, t.terms.per = tonumber(starts), tonumber(per) end
  end
  return t.terms
end
local function keeps(t)
  if not t.keeps then
    terms(t)
    local dage, dmax, dbytes, xage, xmax, xbytes, window = match(t.line,
      '^%d+ %d %d+ (%d+) (%d+) (%d+) (%d+) (%d+) (%d+) (%d+)')
    t.keeps = { window = tonumber(window),
      d = { age = tonumber(dage), max = tonumber(dmax), bytes = tonumber(dbytes) },
      x = { age = tonumber(xage), max = tonumber(xmax), bytes = tonumber(xbytes) } }
    t.keeps.c = t.keeps.d
  end
  return t.keeps
end

-- limits resolves a queue's: those of its lane's own settings over its topic's.
local function limits(q)
  local k = terms(q.topic)
  if not q.lane then return k end
  if not q.limits then
    local paused, limit, starts, per = match(q.lane, '^%d+ (%d) (%d+) (%d+) (%d+)')
    q.limits = { paused = k.paused or paused == '1', limit = limit ~= '0' and tonumber(limit) or k.limit,
      starts = k.starts, per = k.per }
    if starts ~= '0' then q.limits.starts, q.limits.per = tonumber(starts), tonumber(per) end
  end
  return q.limits
end
