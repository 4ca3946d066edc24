-- Claims ready and due jobs.
-- KEYS    those of keys.lua, the queues being the wanted ones; lane_settings; then, when the call follows a settlement in the
--         same round trip, the reply key of that settlement
-- ARGV    token, most jobs, most bytes of bodies, margin in ms, 1 when the call follows a settlement, slack in ms, the
--         lease owner or '' when no queue is asked for jobs beyond its lane's limit, then for each queue: most jobs, timeout
--         in ms, how the caller delivers them; then, with a lease owner, for each how many beyond the limit; then for each, unless the caller knows none, the
--         revision of its lane's settings that the caller knows
-- result  EARLY when the settlement has not run yet, else: now, revision of the limits, {for each queue, as letters: m more
--         is left, b it is blocked, o its breaker is open}, {for each job: position of its queue, member, record, run,
--         ms left of its lease}, {position of each queue whose lane's settings are not those known, settings ('' none)}
local token, most, room, margin = ARGV[A + 1], tonumber(ARGV[A + 2]), tonumber(ARGV[A + 3]), tonumber(ARGV[A + 4])
local lines, jobs, lanes, taken, used = {}, {}, {}, 0, 0
local FEW, MANY, MISSED, missed, size = 4, 64, 4194304, 0, 16384 -- jobs of a portion, least and most; bytes
local slack, LANE_SETTINGS, OWNER, LOOK = tonumber(ARGV[A + 6]), KEYS[K + 1], ARGV[A + 7], 2048
local AHEAD = A + 7 + nq * 3
local REVISIONS = AHEAD + (OWNER ~= '' and nq or 0)
if ARGV[A + 5] == '1' and call('EXISTS', KEYS[#KEYS]) == 0 then return 'EARLY' end
local again = call('GET', REPLY)
allow()

-- add adds one job to the result.
local function add(i, member, rec, run, left)
  local n = #jobs
  jobs[n + 1], jobs[n + 2], jobs[n + 3], jobs[n + 4], jobs[n + 5] = i, member, rec, run, left
end

-- repeated adds what is still leased under the token.
local function repeated(q, i)
  local claimed = call('ZRANGE', q.claimed, 0, -1, 'WITHSCORES')
  for from = 1, #claimed, 1000 do
    local members = {}
    for j = from, math.min(from + 999, #claimed), 2 do members[#members + 1] = claimed[j] end
    local runs = call('HMGET', RUNS, unpack(members))
    for j, member in ipairs(members) do
      if runs[j] and parse_run(runs[j]).lease == token .. '@' .. q.n then
        add(i, member, call('HGET', JOBS, member), runs[j], int(claimed[from + j * 2 - 1] - now))
      end
    end
  end
end

-- candidates returns the jobs to claim, and how many of them are in ready. After those in ready come due ones, so that ready's
-- bound never limits a claim.
local function candidates(q, want)
  if order.on(q) then
    local member, due
    if order.advance(q) then member, due = order.first(q) end
    return { member and due <= now and member or nil }, 0
  end
  local members = call('LRANGE', q.ready, 0, want - 1)
  local ready = #members
  if ready < want then
    local due = call('ZRANGEBYSCORE', q.due, '-inf', NOW, 'LIMIT', 0, want - ready)
    for j = 1, #due do members[ready + j] = due[j] end
  end
  return members, ready
end

-- first_run returns the run of a job that is claimed for the first time. marks are added to its flags. cached has the part that
-- mostly equals that of the job before.
local cached = {}
local function first_run(lease, marks, has_fingerprint, size, due)
  if cached.due ~= due or cached.lease ~= lease then
    cached.due, cached.lease, cached.schedule = due, lease, ' - ' .. NOW .. ' - ' .. join_schedule(due, due, 1, 0) .. ' 0 0 0'
  end
  return lease .. (has_fingerprint and ' 0p' or ' 0') .. marks .. ' ' .. size .. cached.schedule
end

-- next_run returns the run of a job that was claimed or replaced before. It is nil if the job is claimed or has ended: a crash of
-- Redis may have left it in ready or due.
local function next_run(lease, marks, size, line)
  local r = parse_run(line)
  if r.lease ~= '-' or r.state ~= '-' then return nil end
  r.lease, r.size, r.finished = lease, size, NOW
  if find(r.flags, '[ro]') then r.flags = string.gsub(r.flags, '[ro]', '') end
  if marks ~= '' then r.flags = r.flags .. marks end
  return format_run(r)
end

-- is_expired reports whether a job's time to live is over. Such a job takes no start of a rate.
local function is_expired(member)
  local ttl = has_ttls() and call('ZSCORE', TTL, member)
  return ttl and tonumber(ttl) < now
end

-- A queue's owner, where one is noted, has all leases of the queue, and maybe more than the limit. Another's claim removes
-- the note.
if nq > 0 and call('EXISTS', OWNERS) == 1 then
  local numbers = {}
  for i, q in ipairs(queues) do numbers[i] = q.n end
  for i, owner in ipairs(call('HMGET', OWNERS, unpack(numbers))) do queues[i].owner = owner end
end

-- leased_only_to_caller reports whether the caller has all leases of a queue. Of more than LOOK it reads none.
local function leased_only_to_caller(q)
  local claimed = count_claimed(q)
  if claimed == 0 or q.owner == OWNER then return true end
  if q.owner or claimed > LOOK then return false end
  for from = 0, claimed - 1, 64 do
    local members = call('ZRANGE', q.claimed, from, from + 63)
    for _, line in ipairs(call('HMGET', RUNS, unpack(members))) do
      if sub(line or '', 1, #OWNER) ~= OWNER then return false end
    end
  end
  return true
end

-- note_owner notes the caller as owner if it will have more jobs of a queue than the limit. Otherwise it removes the note of
-- another owner. It runs before the leases are written, so that the note is true also if a crash of Redis leaves a part of the
-- script behind.
local function note_owner(q, claimed, limit)
  if claimed > limit then
    if q.owner ~= OWNER then call('HSET', OWNERS, q.n, OWNER) end
  elseif q.owner and sub(token, 1, #q.owner) ~= q.owner then
    call('HDEL', OWNERS, q.n)
  end
end

-- take claims jobs. skipped counts members that cannot be claimed or have no record. Records are read in portions sized by
-- the record before (at first a guess), so that few are read for which there is no room. missed counts the bytes of those.
local function take(q, i, want, timeout)
  local members, ready = candidates(q, want)
  if #members == 0 then return end
  local count, leases, fresh, n, skipped, expired, first_deadline = 0, {}, {}, 0, 0, 0, NEVER
  local lease, effective, before = token .. '@' .. q.n, limits(q), count_claimed(q)
  local probe = q.throttle and q.throttle.open and 'o' or ''
  local last, lasts, deadline
  local fits = true
  while fits and count < #members do
    local upto = math.min(#members, count + math.max(FEW, math.min(MANY, floor((room - used) / size))))
    local recs = call('HMGET', JOBS, unpack(members, count + 1, upto))
    local runs = call('HMGET', RUNS, unpack(members, count + 1, upto))
    for j = 1, #recs do
      local member, rec, line = members[count + 1], recs[j], runs[j]
      if rec then
        local flags, _, _, _, _, t1, t2, t3, b1, b2, b3, d1, d2, d3, d4, d5, d6 = byte(rec, 2, 18)
        local body = (b1 * 256 + b2) * 256 + b3
        size = #rec
        if taken > 0 and used + body > room then
          fits, missed = false, missed + body
          break
        end
        local left = (t1 * 256 + t2) * 256 + t3
        left = (left > 0 and left or timeout) + margin
        if left ~= last then
          last, lasts, deadline = left, int(left), int(now + left)
          first_deadline = math.min(first_deadline, now + left)
        end
        local run, marks = nil, probe
        if effective.starts and not is_expired(member) then marks = 'r' .. probe end
        if line then
          run = next_run(lease, marks, size, line)
        else
          run = first_run(lease, marks, flags % 2 == 1, size, ((((d1 * 256 + d2) * 256 + d3) * 256 + d4) * 256 + d5) * 256 + d6)
        end
        if run then
          leases[n + 1], leases[n + 2] = deadline, member
          fresh[n + 1], fresh[n + 2] = member, run
          n = n + 2
          if effective.starts and marks == probe then expired = expired + 1 end
          add(i, member, rec, run, lasts)
          taken, used = taken + 1, used + body
        else
          skipped = skipped + 1
        end
      else
        skipped = skipped + 1
      end
      count = count + 1
    end
  end
  if count == 0 then return end
  ready = math.min(ready, count)
  note_owner(q, before + n / 2, effective.limit)
  call_in_chunks('ZADD', q.claimed, leases)
  call_in_chunks('HSET', RUNS, fresh)
  q.claimed_count = before + n / 2
  if before == 0 then q.first_deadline = first_deadline end
  if ready > 0 then call('LTRIM', q.ready, ready, -1) end
  if count > ready then call('ZREM', q.due, unpack(members, ready + 1, count)) end
  add_counter(q.topic, 'ready', -ready)
  add_counter(q.topic, 'claimed', count - skipped)
  if effective.starts and count > skipped + expired then
    local throttle = ensure_throttle(q)
    grant_starts(throttle.starts, now, later + slack, count - skipped - expired, effective.starts, effective.per)
    throttle.changed = true
  end
end

-- A claim can empty ready before the wake-up is repeated. Then the next due time may be earlier than the queue's score.
read_agenda_head()
for i, q in ipairs(queues) do
  local a = A + 7 + (i - 1) * 3
  local served = topic_limits(q.topic).deliver == tonumber(ARGV[a + 3])
  if again then
    repeated(q, i)
  else
    local effective, throttle = limits(q), q.throttle
    if throttle and effective.starts then
      local before = #throttle.starts
      throttle.starts = count_window(throttle.starts, effective.per, now)
      throttle.changed = throttle.changed or #throttle.starts < before
    end
    local want, allowed = math.min(tonumber(ARGV[a + 1]), most - taken), capacity(q)
    local ahead = OWNER ~= '' and tonumber(ARGV[AHEAD + i]) or 0
    if ahead > 0 and want > allowed and not effective.starts and not effective.ordered and leased_only_to_caller(q) then allowed = capacity(q, ahead) end
    want = math.min(want, allowed)
    if served and want > 0 and (taken == 0 or used <= room and missed < MISSED) then
      take(q, i, want, tonumber(ARGV[a + 2]))
    end
  end
  local more, blocked = update_agenda(q)
  local open = q.throttle and q.throttle.open and 'o' or ''
  lines[i] = (blocked and 'b' or more and served and 'm' or '') .. open
  local revision = q.lane and string.match(q.lane, '^%d+') or '0'
  if revision ~= (ARGV[REVISIONS + i] or '0') then
    lanes[#lanes + 1] = i
    lanes[#lanes + 1] = q.lane and call('HGET', LANE_SETTINGS, ARGV[3 + i * 3]) or ''
  end
end
close()
call('SET', REPLY, '1', 'EX', REPLY_TTL)
return { NOW, call('HGET', LIMITS, '') or '0', lines, jobs, lanes }
