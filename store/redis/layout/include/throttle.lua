-- count_claimed returns how many jobs of a queue are claimed. It is read once: scripts that change the number set or clear
-- q.claimed_count.
local function count_claimed(q)
  q.claimed_count = q.claimed_count or call('ZCARD', q.claimed)
  return q.claimed_count
end

-- A throttle limits a whole queue. It is stored as 'cooldown open ends starts since cause': nothing is claimed until cooldown; open is
-- 1 while its breaker is; starts are those that its rate counts; ends is when the throttle can be removed; since is when the
-- cooldown was set; cause is why, a letter: a asked, b breaker, u unreadable. More fields may follow. tail has the text of the fields after starts, each with a space before it; stored
-- reports that Redis has the throttle, and was_open that its breaker was open there.
local function ensure_throttle(q)
  if not q.throttle then q.throttle = { cooldown = 0, open = false, ends = 0, starts = {}, tail = '' } end
  return q.throttle
end

-- set_cooldown_start records when a throttle's cooldown was set, and its cause; nil: as before.
local function set_cooldown_start(throttle, at, cause)
  local before, more = match(throttle.tail, '^ %d+ (%a)(.*)$')
  throttle.tail = ' ' .. at .. ' ' .. (cause or before or 'a') .. (more or '')
end

-- cooldown_cause returns the cause of a throttle's cooldown.
local function cooldown_cause(throttle) return match(throttle.tail, '^ %d+ (%a)') or 'a' end

-- capacity returns how many jobs of a queue may be claimed now, by a caller that may have ahead more than
-- the limit. If it is 0, it also returns when that ends by time alone. It closes a breaker that was not probed for BREAKER_TTL
-- after its cooldown.
local function capacity(q, ahead)
  local effective, throttle, claimed, free_at = limits(q), q.throttle, count_claimed(q), 0
  local n = effective.limit + (ahead or 0) - claimed
  if throttle and throttle.open and claimed == 0 and now > throttle.cooldown + BREAKER_TTL then
    throttle.open, throttle.changed = false, true
  end
  if effective.paused or n <= 0 then return 0, NEVER end
  if not throttle then return effective.starts and math.min(n, effective.starts) or n end
  if throttle.open then
    if claimed > 0 then return 0, NEVER end
    n = 1
  end
  if effective.starts then
    local list, count = count_window(throttle.starts, effective.per, now)
    if count >= effective.starts then free_at = next_start(list, count, effective.starts, effective.per) end
    n = math.min(n, effective.starts - count)
  end
  free_at = math.max(free_at, throttle.cooldown)
  if free_at > now then return 0, free_at end
  return n
end

-- save_throttle writes a queue's throttle, or removes it when it has ended. The carrier processes it again then; with a probe
-- in flight, when the probe has ended.
local function save_throttle(q, claimed)
  local throttle, effective = q.throttle, limits(q)
  local open_until, ends, list = 0, throttle.cooldown, throttle.starts
  if throttle.open then open_until = claimed > 0 and NEVER or throttle.cooldown + BREAKER_TTL end
  if effective.starts then
    list = count_window(list, effective.per, now)
    if list[1] then ends = math.max(ends, list[#list].last + effective.per) end
  elseif list[1] then
    ends = math.max(ends, throttle.ends)
  end
  if throttle.open then ends = math.max(ends, open_until + 1) end
  if ends <= now then
    if throttle.stored then
      call('HDEL', THROTTLES, q.n)
      call('ZREM', THROTTLE_QUEUE, q.n)
      if throttle.was_open then call('ZREM', q.topic.open, q.n) end
    end
    q.throttle = nil
  elseif throttle.changed or ends ~= throttle.ends then
    local starts = format_groups(throttle.starts)
    call('HSET', THROTTLES, q.n,
      table.concat({ int(throttle.cooldown), throttle.open and 1 or 0, int(ends), starts .. throttle.tail }, ' '))
    call('ZADD', THROTTLE_QUEUE, int(ends), q.n)
    if throttle.open then
      call('ZADD', q.topic.open, int(open_until), q.n)
    elseif throttle.was_open then
      call('ZREM', q.topic.open, q.n)
    end
  end
end
