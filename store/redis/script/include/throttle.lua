-- count_claimed returns how many jobs of a queue are claimed. It is read once: scripts that change the number set or clear q.claimed_count.
local function count_claimed(q)
  q.claimed_count = q.claimed_count or call('ZCARD', q.claimed)
  return q.claimed_count
end

-- A throttle limits a whole queue. It is stored as 'cooldown open over starts since': nothing is claimed until cooldown; open is 1 while
-- its breaker is; starts are those that its rate counts; over is when the throttle can be removed; since is when the
-- cooldown was set. More fields may follow.
local function ensure_throttle(q)
  if not q.throttle then q.throttle = { cooldown = 0, open = false, over = 0, starts = {}, rest = '' } end
  return q.throttle
end

-- set_cooldown_start records when a throttle's cooldown was set.
local function set_cooldown_start(g, at) g.rest = ' ' .. at .. (match(g.rest, '^ %d+(.*)$') or g.rest) end

-- capacity returns how many jobs of a queue may be claimed now, by a caller that may have ahead more than
-- the limit. If it is 0, it also returns when that ends by time alone. It closes a breaker that was not probed for BREAKER_TTL
-- after its cooldown.
local function capacity(q, ahead)
  local k, g, claimed, till = limits(q), q.throttle, count_claimed(q), 0
  local n = k.limit + (ahead or 0) - claimed
  if g and g.open and claimed == 0 and now > g.cooldown + BREAKER_TTL then g.open, g.changed = false, true end
  if k.paused or n <= 0 then return 0, NEVER end
  if not g then return k.starts and math.min(n, k.starts) or n end
  if g.open then
    if claimed > 0 then return 0, NEVER end
    n = 1
  end
  if k.starts then
    local list, count = count_window(g.starts, k.per, now)
    if count >= k.starts then till = next_start(list, count, k.starts, k.per) end
    n = math.min(n, k.starts - count)
  end
  till = math.max(till, g.cooldown)
  if till > now then return 0, till end
  return n
end

-- save_throttle writes a queue's throttle, or removes it when it is over. The carrier processes it again then; with a probe in flight,
-- when the probe has ended.
local function save_throttle(q, claimed)
  local g, k = q.throttle, limits(q)
  local open_until, over, list = 0, g.cooldown, g.starts
  if g.open then open_until = claimed > 0 and NEVER or g.cooldown + BREAKER_TTL end
  if k.starts then
    list = count_window(list, k.per, now)
    if list[1] then over = math.max(over, list[#list].last + k.per) end
  elseif list[1] then
    over = math.max(over, g.over)
  end
  if g.open then over = math.max(over, open_until + 1) end
  if over <= now then
    if g.stored then
      call('HDEL', THROTTLES, q.n)
      call('ZREM', THROTTLE_QUEUE, q.n)
      if g.was then call('ZREM', q.topic.open, q.n) end
    end
    q.throttle = nil
  elseif g.changed or over ~= g.over then
    call('HSET', THROTTLES, q.n, table.concat({ int(g.cooldown), g.open and 1 or 0, int(over), format_groups(g.starts) .. g.rest },
      ' '))
    call('ZADD', THROTTLE_QUEUE, int(over), q.n)
    if g.open then
      call('ZADD', q.topic.open, int(open_until), q.n)
    elseif g.was then
      call('ZREM', q.topic.open, q.n)
    end
  end
end
