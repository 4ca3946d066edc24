-- Shared by jobs.lua, queues.lua and ended.lua.
--
-- A job's record and run decide. mend puts a job where they say, and removes it elsewhere:
--
--   the run says     the job is in
--   no lease         due, at the run's due moment, or ready
--   a lease          claimed
--   an end           the topic's list of jobs that ended so
--
-- Counters are left as they are: counts.lua sets them at the end of the check.
local repairs, examples = {}, {}
local function repaired(kind, member, n)
  repairs[kind] = (repairs[kind] or 0) + (n or 1)
  if member and #examples < 5 then examples[#examples + 1] = member end
end

-- LOST is what is added to a job's timeout for the deadline of a lease that has none, in ms.
local LOST = 30000

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

-- leave removes a job from a queue's sets but keep, and returns from how many.
local function leave(q, member, keep)
  local left = 0
  if keep ~= 'due' then left = left + call('ZREM', q.due, member) end
  if keep ~= 'claimed' then left = left + call('ZREM', q.claimed, member) end
  if keep ~= 'due' then left = left + call('LREM', q.ready, 0, member) end
  if not keep then order.leave(q, member) end
  return left
end

-- unlist removes a job from its topic's lists of ended jobs but that of state keep, and returns from how many.
local function unlist(t, member, keep)
  local left = 0
  for _, state in ipairs({ 'd', 'x', 'c' }) do
    if state ~= keep then left = left + call('ZREM', t[state], member) end
  end
  return left
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
  local readable = rec and #rec >= 18
  if not readable or queue_number(rec) ~= q.n then
    if leave(q, member) + unlist(q.topic, member) > 0 then
      repaired(readable and 'misplaced' or 'no_job', member)
      q.touched = true
    end
    return
  end
  local line = call('HGET', RUNS, member)
  local r = line and parse_run(line) or default_run(rec)
  if not r.lease then return end -- it cannot be read, and is left alone
  if r.state == '-' and r.lease ~= '-' and match(r.lease, '@(%d+)$') ~= q.n then
    r.lease, r.finished, r.schedule = '-', '0', reschedule(r.schedule, NOW) -- no settlement can name it
    call('HSET', RUNS, member, format_run(r))
  end
  local left, changed, unplaced = 0, false, false
  if r.state ~= '-' then
    left = leave(q, member) + unlist(q.topic, member, r.state)
    local set = q.topic[r.state]
    if set and not call('ZSCORE', set, member) then
      call('ZADD', set, r.finished, member)
      changed, unplaced = true, left == 0
    end
  elseif r.lease == '-' then
    left = leave(q, member, 'due') + unlist(q.topic, member)
    local expires, age = read_lifetime(rec)
    local ttl = ttl_end(expires, tonumber(match(r.schedule, '^%d+ (%d+)')), age)
    if ttl and not call('ZSCORE', TTL, member) then set_ttls({ int(ttl), member }) end
    changed, unplaced = wait(q, member, tonumber(match(r.schedule, '^%d+')))
    unplaced = unplaced and left == 0
  else
    left = leave(q, member, 'claimed') + unlist(q.topic, member)
    if not call('ZSCORE', q.claimed, member) then
      call('HDEL', OWNERS, q.n) -- the lease may be another's
      call('ZADD', q.claimed, int(now + decode_number(rec, 7, 9) + LOST), member)
      changed, unplaced = true, left == 0
    end
  end
  if left > 0 or changed then
    repaired(unplaced and 'unplaced' or 'misplaced', member)
    q.touched = true
  end
end

-- relook writes a queue's agenda and throttle anew.
local function relook(q)
  local before = call('ZSCORE', AGENDA, q.n)
  if q.throttle and not call('ZSCORE', THROTTLE_QUEUE, q.n) then
    q.throttle.changed = true
    repaired('agenda')
  end
  if not (q.throttle and q.throttle.open) then call('ZREM', q.topic.open, q.n) end
  write_placed(q)
  q.claimed_count, q.notify = nil, q.notify or q.touched or not before
  local deferred = call('ZSCORE', DEFERRED, q.n)
  update_agenda(q, deferred and now + 100 or nil)
  local after = call('ZSCORE', AGENDA, q.n)
  if not after or q.touched or deferred then return end
  -- A policy that has just changed moves queues as well: its topic is in recheck until then.
  if not before or tonumber(before) > math.max(now, tonumber(after)) + RENOTIFY and call('EXISTS', RECHECK) == 0 then
    repaired('agenda')
  end
end

-- report returns the kinds and numbers of repairs.
local function report()
  local list = {}
  for kind, n in pairs(repairs) do
    list[#list + 1] = kind
    list[#list + 1] = tostring(n)
  end
  return list
end
