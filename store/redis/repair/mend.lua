-- Shared by jobs.lua, queues.lua and ended.lua.
--
-- A job's record and run decide. mend puts a job where they say, and removes it elsewhere:
--
--   the run says     the job is in
--   no lease         due, at the run's due moment, or ready
--   a lease          claimed
--   an end           the topic's list of jobs that ended so
--
-- A job without a run that is in a list of ended jobs only has ended: mend writes its run again.
--
-- Counters are left as they are: counts.lua sets them at the end of the check.
--
-- faults is the result of these scripts: {kind, member ('' none), queue or topic, what is wrong, …}
local faults = {}
local function repaired(kind, member, where, what)
  local n = #faults
  faults[n + 1], faults[n + 2], faults[n + 3], faults[n + 4] = kind, member, where, what
end

-- LOST is what is added to a job's timeout for the deadline of a lease that has none, in ms. A lease that ends after LONGEST has none.
-- Deadlines are of the clock before its last step as long as the reading of a carrier is in the future, and then while they are moved.
local LOST = 30000
local LONGEST = call('EXISTS', KEYS[K + 2]) == 1 and math.huge or math.max(now, tonumber(call('HGET', KEYS[K + 1], 'reading') or 0)) + LEASE_MAX

-- name_of returns a queue's full name.
local names_by_number = {}
local function name_of(q)
  if not names_by_number[q.n] then names_by_number[q.n] = call('HGET', NAMES, q.n) or q.topic.name end
  return names_by_number[q.n]
end

-- number returns the number of the queue that a job's record names, and its first due moment; nil if there is no readable record. It
-- returns false for a record of more than 4 KiB, which is not read.
local function number(member)
  local size = call('HSTRLEN', JOBS, member)
  if size < 18 then return nil end
  if size > 4096 then return false end
  local rec = call('HGET', JOBS, member)
  return queue_number(rec), decode_number(rec, 13, 18)
end

-- is_foreign reports whether a job's record names another queue, or does not exist.
local function is_foreign(q, member)
  local n = number(member)
  return n == nil or n and n ~= q.n
end

-- lease_and_state returns those of a run, '-' for a job that was never claimed, and nil if it cannot be read.
local function lease_and_state(line)
  if not line then return '-', '-' end
  return match(line, '^(%S+) %S+ %d+ (%S) ')
end

local LISTS = { d = 'delivered', x = 'dead', c = 'cancelled' }
local REASONS = { d = '-', x = 'exhausted', c = 'cancelled' } -- of jobs that have lost theirs

-- leave removes a job from a queue's sets but keep, and adds their names to left.
local function leave(q, member, keep, left)
  if keep ~= 'due' and call('ZREM', q.due, member) > 0 then left[#left + 1] = 'due' end
  if keep ~= 'claimed' and call('ZREM', q.claimed, member) > 0 then left[#left + 1] = 'claimed' end
  if keep ~= 'due' and call('LREM', q.ready, 0, member) > 0 then left[#left + 1] = 'ready' end
  if not keep then order.leave(q, member) end
end

-- unlist removes a job from its topic's lists of ended jobs but that of state keep, and adds their names to left.
local function unlist(t, member, keep, left)
  for _, state in ipairs({ 'd', 'x', 'c' }) do
    if state ~= keep and call('ZREM', t[state], member) > 0 then left[#left + 1] = LISTS[state] end
  end
end

-- ended_run returns the run of a job that has lost it and is only in a list of ended jobs; nil for any other job.
local function ended_run(q, member, rec)
  if call('ZSCORE', q.due, member) or call('ZSCORE', q.claimed, member) or call('LPOS', q.ready, member) then return nil end
  for _, state in ipairs({ 'd', 'x', 'c' }) do
    local finished = call('ZSCORE', q.topic[state], member)
    if finished then
      local r = default_run(rec)
      r.state, r.finished, r.reason = state, int(tonumber(finished)), REASONS[state]
      if call('HEXISTS', ATTEMPTS, member) == 1 then
        r.flags, r.size = r.flags .. 't', r.size + #call('HGET', ATTEMPTS, member)
      end
      return r
    end
  end
end

-- wait puts a waiting job into one of due and ready. It returns whether it changed anything, and whether the job was in neither.
local function wait(q, member, moment)
  local due, ready = call('ZSCORE', q.due, member), #call('LPOS', q.ready, member, 'COUNT', 0)
  if not due and ready == 0 then
    add_due(q, moment, member)
    return true, true
  end
  local changed = due and ready > 0
  if changed then
    if moment <= now then call('ZREM', q.due, member) else call('LREM', q.ready, 0, member) end
    due = moment > now and due
  end
  if due and tonumber(due) ~= moment then
    call('ZADD', q.due, int(moment), member)
    return true
  end
  if not due and ready > 1 then
    call('LREM', q.ready, 1 - ready, member)
    return true
  end
  return changed
end

-- mend puts a job of a queue, or what is stored under its id, where it belongs.
local function mend(q, member)
  local rec = call('HGET', JOBS, member)
  local readable, left = rec and #rec >= 18, {}
  if not readable or queue_number(rec) ~= q.n then
    leave(q, member, nil, left)
    unlist(q.topic, member, nil, left)
    if #left > 0 then
      repaired(readable and 'misplaced' or 'no_job', member, name_of(q),
        'in ' .. table.concat(left, ' and ') .. (readable and ', but it is of another queue' or ', but there is no such job'))
      q.touched = true
    end
    return
  end
  local line = call('HGET', RUNS, member)
  local ended = not line and ended_run(q, member, rec)
  if ended then
    call('HSET', RUNS, member, format_run(ended))
    return repaired('misplaced', member, name_of(q), 'it has lost its run, and is in ' .. LISTS[ended.state])
  end
  local r = line and parse_run(line) or default_run(rec)
  if not r.lease then return end -- it cannot be read, and is left alone
  if r.state == '-' and r.lease ~= '-' and match(r.lease, '@(%d+)$') ~= q.n then
    r.lease, r.finished, r.schedule = '-', '0', reschedule(r.schedule, NOW) -- no settlement can name it
    call('HSET', RUNS, member, format_run(r))
  end
  local place, changed, unplaced, endless
  if r.state ~= '-' then
    place = LISTS[r.state] or r.state
    leave(q, member, nil, left)
    unlist(q.topic, member, r.state, left)
    local set = q.topic[r.state]
    if set and not call('ZSCORE', set, member) then
      call('ZADD', set, r.finished, member)
      changed, unplaced = true, #left == 0
    end
  elseif r.lease == '-' then
    place = 'due or ready'
    leave(q, member, 'due', left)
    unlist(q.topic, member, nil, left)
    local expires, age = read_lifetime(rec)
    local ttl = ttl_end(expires, tonumber(match(r.schedule, '^%d+ (%d+)')), age)
    if ttl and not call('ZSCORE', TTL, member) then
      set_ttls({ int(ttl), member })
      if expires and expires > now then repaired('lifetime', member, name_of(q), 'it expires, and is missing from the index of expiries') end
    end
    changed, unplaced = wait(q, member, tonumber(match(r.schedule, '^%d+')))
    unplaced = unplaced and #left == 0
  else
    place = 'claimed'
    leave(q, member, 'claimed', left)
    unlist(q.topic, member, nil, left)
    local deadline = call('ZSCORE', q.claimed, member)
    endless = deadline and tonumber(deadline) > LONGEST
    if not deadline or endless then
      call('HDEL', OWNERS, q.n) -- the lease may be another's
      call('ZADD', q.claimed, int(now + decode_number(rec, 7, 9) + LOST), member)
      changed, unplaced = not endless, not deadline and #left == 0
      q.touched = true
    end
  end
  if endless then repaired('lease', member, name_of(q), 'its lease does not end') end
  if #left > 0 or changed then
    local found = #left > 0 and 'in ' .. table.concat(left, ' and ') or unplaced and 'in no place' or 'at a wrong place or time'
    repaired(unplaced and 'unplaced' or 'misplaced', member, name_of(q), found .. ', but it belongs to ' .. place)
    q.touched = true
  end
end

-- relook writes a queue's agenda and throttle anew, and its place among the lanes with health.
local function relook(q)
  local before = call('ZSCORE', AGENDA, q.n)
  if q.throttle and not call('ZSCORE', THROTTLE_QUEUE, q.n) then
    q.throttle.changed = true
    repaired('agenda', '', name_of(q), 'nothing ends its throttle')
  end
  if not (q.throttle and q.throttle.open) then call('ZREM', q.topic.open, q.n) end
  local since = match(call('HGET', HEALTH, q.n) or '', '^%d+')
  if not since then
    call('ZREM', q.topic.unhealthy, q.n)
  elseif not call('ZSCORE', q.topic.unhealthy, q.n) then
    call('ZADD', q.topic.unhealthy, since, q.n)
  end
  write_placed(q)
  q.claimed_count, q.notify = nil, q.notify or q.touched or not before
  local deferred = call('ZSCORE', DEFERRED, q.n)
  update_agenda(q, deferred and now + 100 or nil)
  local after = call('ZSCORE', AGENDA, q.n)
  if not after or q.touched or deferred then return end
  -- A policy that has just changed moves queues as well: its topic is in recheck until then.
  if not before or tonumber(before) > math.max(now, tonumber(after)) + RENOTIFY and call('EXISTS', RECHECK) == 0 then
    repaired('agenda', '', name_of(q), before and 'it is scheduled too late' or 'it has jobs, and is not scheduled')
  end
end
