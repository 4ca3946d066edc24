-- holds is how many jobs of a queue are held. It is asked once; whoever changes that says it, or forgets it.
local function holds(q)
  q.holds = q.holds or call('ZCARD', q.held)
  return q.holds
end

-- A gate is what keeps a whole queue back: a line 'hold open over starts since'. It is held back until hold; open is 1 while
-- its breaker is; starts are those that its rate counts; over is when nothing of it will matter any more; since is when the
-- hold was set. A queue without a gate has none of it. More fields may follow.
local function gate(q)
  if not q.gate then q.gate = { hold = 0, open = false, over = 0, starts = {}, rest = '' } end
  return q.gate
end

-- held_since notes when a gate's hold was set.
local function held_since(g, at) g.rest = ' ' .. at .. (match(g.rest, '^ %d+(.*)$') or g.rest) end

-- free is how many jobs of a queue may be claimed now, by a caller that may have so many ahead of the limit; when none may,
-- also when time alone ends that.
-- A breaker that nobody probed for a while after its hold is closed.
local function free(q, ahead)
  local k, g, held, till = limits(q), q.gate, holds(q), 0
  local n = k.limit + (ahead or 0) - held
  if g and g.open and held == 0 and now > g.hold + BREAKER_TTL then g.open, g.changed = false, true end
  if k.paused or n <= 0 then return 0, NEVER end
  if not g then return k.starts and math.min(n, k.starts) or n end
  if g.open then
    if held > 0 then return 0, NEVER end
    n = 1
  end
  if k.starts then
    local list, count = counted(g.starts, k.per, now)
    if count >= k.starts then till = fits(list, count, k.starts, k.per) end
    n = math.min(n, k.starts - count)
  end
  till = math.max(till, g.hold)
  if till > now then return 0, till end
  return n
end

-- save writes a queue's gate, or removes it when it says nothing any more. A gate is looked at again when it is over, for
-- that; one of a probe that is out when that ends.
local function save(q, held)
  local g, k = q.gate, limits(q)
  local memory, over, list = 0, g.hold, g.starts
  if g.open then memory = held > 0 and NEVER or g.hold + BREAKER_TTL end
  if k.starts then
    list = counted(list, k.per, now)
    if list[1] then over = math.max(over, list[#list].last + k.per) end
  elseif list[1] then
    over = math.max(over, g.over)
  end
  if g.open then over = math.max(over, memory + 1) end
  if over <= now then
    if g.stored then
      call('HDEL', GATES, q.n)
      call('ZREM', GATEQ, q.n)
      if g.was then call('ZREM', q.topic.open, q.n) end
    end
    q.gate = nil
  elseif g.changed or over ~= g.over then
    call('HSET', GATES, q.n, table.concat({ int(g.hold), g.open and 1 or 0, int(over), grouped(g.starts) .. g.rest },
      ' '))
    call('ZADD', GATEQ, int(over), q.n)
    if g.open then
      call('ZADD', q.topic.open, int(memory), q.n)
    elseif g.was then
      call('ZREM', q.topic.open, q.n)
    end
  end
end
