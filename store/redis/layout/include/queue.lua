-- set_ttls writes when the times to live of jobs end, given as pairs of end and member.
local function set_ttls(pairs) call_in_chunks('ZADD', TTL, pairs) end

-- has_ttls reports whether any job's time to live ends.
local known_ttls
local function has_ttls()
  if known_ttls == nil then known_ttls = call('EXISTS', TTL) == 1 end
  return known_ttls
end

-- add_due puts a job into due. write_placed writes it.
local function add_due(q, due, member)
  local dues = q.dues or {}
  local n = #dues
  dues[n + 1], dues[n + 2], q.dues = int(due), member, dues
end

-- place_job puts a job without a lease into ready if it is due and no other of its queue is due before it, else into due. All of an
-- ordered queue are in due.
-- write_placed writes it.
local function place_job(q, member, due)
  if order.on(q) then
    order.start(q)
    if due <= now then
      q.placed = q.placed or {}
      q.placed[member] = true
    end
    return add_due(q, due, member)
  end
  if due <= now then
    if q.behind == nil then
      local first = call('ZRANGE', q.due, 0, 0, 'WITHSCORES')
      q.behind = first[2] ~= nil and tonumber(first[2]) <= now
      q.count = call('LLEN', q.ready)
    end
    if not q.behind and q.count < READY_MAX then
      q.readies = q.readies or {}
      q.readies[#q.readies + 1] = member
      q.count = q.count + 1
      if q.count == 1 then q.notify = true end
      return
    end
    q.behind = true
  end
  add_due(q, due, member)
end

-- read_agenda_head reads the first moment on the agenda, so that update_agenda knows whether it writes an earlier one.
local head, early
local function read_agenda_head()
  local first = call('ZRANGE', AGENDA, 0, 0, 'WITHSCORES')
  head = first[2] and tonumber(first[2]) or NEVER
end

-- write_placed writes the jobs of place_job and add_due.
local function write_placed(q)
  if q.dues then
    call_in_chunks('ZADD', q.due, q.dues)
    if q.order and order.on(q) then
      local members = {}
      for i = 2, #q.dues, 2 do members[i / 2] = q.dues[i] end
      if not order.add(q, members) then order.restart(q) end
    end
  end
  if q.readies then
    call_in_chunks('RPUSH', q.ready, q.readies)
    add_counter(q.topic, 'ready', #q.readies)
  end
  q.dues, q.readies = nil, nil
end

-- is_unread reports whether the last wake-up of a queue is still in the list of its topic's own group, for which nobody may wait. The
-- list is in the order of the wake-ups: it has those since its first one was written. It drops wake-ups of queues without jobs, or
-- throttled since, from the head.
local function is_unread(q, wakeups)
  for _ = 1, 16 do
    local first = call('LRANGE', wakeups, 0, 0)[1]
    if not first then return false end
    local written = call('HMGET', LAST_WAKEUPS, q.n, first)
    local oldest = tonumber(written[2] or 0)
    if oldest > 0 then return tonumber(written[1] or 0) >= oldest end
    call('LPOP', wakeups)
  end
  return false
end

-- push_wakeup appends a queue to the wake-ups of its group, which are no more than the queues with jobs.
local function push_wakeup(q, wakeups, own)
  if own then
    -- While nobody takes them, the oldest give way: they may be of queues that have no jobs any more.
    if call('RPUSH', wakeups, q.n) > call('ZCARD', AGENDA) then call('LPOP', wakeups) end
    call('PEXPIRE', wakeups, REPLY_TTL * 1000)
  elseif call('LLEN', wakeups) < call('ZCARD', AGENDA) then
    call('RPUSH', wakeups, q.n)
  end
end

-- update_agenda writes a queue's score on the agenda and its throttle, and a wake-up if q.notify is set and there are claimable
-- jobs. Lease expiry is not scheduled before least; q.deferred is set if a lease expires earlier. q.first_deadline is the earliest
-- deadline, if it is known. With q.idle, a queue that had no job before keeps the time since when it has none. It returns whether
-- the queue has claimable jobs, and whether it is blocked.
local function update_agenda(q, least)
  write_placed(q)
  local claimed, ready = count_claimed(q), call('LLEN', q.ready)
  local n, free_at = capacity(q)
  if q.throttle then save_throttle(q, claimed) end
  local blocked = n <= 0
  local first = call('ZRANGE', q.due, 0, 0, 'WITHSCORES')[2]
  local moment, repeats = nil, false -- repeats: the moment is when the wake-up is repeated
  first = first and tonumber(first)
  local claimable, ordered = ready > 0 or (first ~= nil and first <= now), order.on(q)
  if not (claimed > 0 or ready > 0 or first) then
    -- Since when it has no job, see forget.lua. A queue that is not on the agenda had none before.
    if call('ZREM', AGENDA, q.n) == 1 or not (q.idle and match(call('HGET', LAST_WAKEUPS, q.n) or '', '^%-')) then
      call('HSET', LAST_WAKEUPS, q.n, '-' .. NOW)
    end
    return false, blocked
  end
  if ordered and blocked then
    ready = 1 -- the carrier looks for the next job when it is not
  elseif ordered then
    first, claimable = order.moment(q)
    ready = claimable and 1 or 0
  end
  local deliver = topic_limits(q.topic).deliver
  local wakeups, own = KEYS[q.topic.wakeups + deliver], deliver > 0
  local notify = q.notify and claimable and not blocked and not (own and is_unread(q, wakeups))
  if blocked then
    moment = free_at
    if free_at < NEVER then
      call('HDEL', LAST_WAKEUPS, q.n) -- so that the wake-up is written at once then
      if ready == 0 then moment = math.max(free_at, first or NEVER) end
    end
  elseif notify then
    call('HSET', LAST_WAKEUPS, q.n, NOW)
    moment, repeats = now + RENOTIFY, true
  elseif ready > 0 then
    -- A wake-up in the future was written before the clock was set back.
    local last = tonumber(call('HGET', LAST_WAKEUPS, q.n) or 0)
    moment, repeats = last > now and now or last + RENOTIFY, true
    if own and moment <= now then
      -- It is unread, or lost. Calls that do not look leave the next look where it is.
      local look = now + RENOTIFY_UNREAD
      if q.notify then call('PEXPIRE', wakeups, REPLY_TTL * 1000) else look = tonumber(call('ZSCORE', AGENDA, q.n) or 0) end
      if look > now and look <= now + RENOTIFY_UNREAD then moment = look end
    end
  else
    moment = first or NEVER
  end
  if claimed > 0 then
    local deadline = q.first_deadline or tonumber(call('ZRANGE', q.claimed, 0, 0, 'WITHSCORES')[2])
    if least and deadline < least then deadline, q.deferred = least, true end
    moment = math.min(moment, deadline)
  end
  call('ZADD', AGENDA, int(moment), q.n)
  if notify then push_wakeup(q, wakeups, own) end
  if head and moment < head and not repeats then early = true end
  return claimable, blocked
end
