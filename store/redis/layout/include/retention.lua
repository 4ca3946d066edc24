-- delete_jobs deletes ended jobs. Sweep forgets their ids when their window has passed.
local function delete_jobs(members, runs)
  call_in_chunks('HDEL', JOBS, members)
  call_in_chunks('HDEL', ATTEMPTS, members)
  for i, member in ipairs(members) do
    if runs[i] and has_flag(runs[i], 'p') then
      local known = call('HGET', IDS, member)
      local forget = known and match(sub(known, 2 + byte(known, 1)), '^%S %d+ %S+ (%d+)')
      if forget then call('ZADD', FORGET, forget, member) end
    end
  end
  call_in_chunks('HDEL', RUNS, members)
end

-- ended_ttls are the jobs that ended in this call, whose time to live no longer counts.
local ended_ttls = {}

-- end_job ends a job: state d, x or c. The caller has taken it out of due, ready or claimed, writes r when it is kept, and
-- calls apply_retention in the end. It returns whether the job is kept.
local function end_job(q, member, r, state, reason)
  order.leave(q, member)
  local t, k = q.topic, retention_limits(q.topic)
  local ended = t.ended[state]
  if not ended then
    ended = { n = 0, bytes = 0, set = {} }
    t.ended[state] = ended
  end
  ended.n = ended.n + 1
  add_counter(t, 'b', -r.size)
  if has_ttls() then ended_ttls[#ended_ttls + 1] = member end
  r.lease, r.state, r.finished, r.reason = '-', state, NOW, reason
  clear_flag(r, 'm')
  if has_flag(r, 'p') then
    local known = call('HGET', IDS, member)
    if known then
      local forget = int(later + k.window)
      call('HSET', IDS, member, sub(known, 1, 1 + byte(known, 1)) ..
        table.concat({ state, NOW, reason, forget }, ' '))
      call('ZADD', FORGET, forget, member)
    end
  end
  if k[state].age <= 0 or k[state].max <= 0 or k[state].bytes <= 0 then
    drop_attempt(member)
    delete_jobs({ member }, { r })
    return false
  end
  r.size = r.size + #(r.text or (has_flag(r, 't') and call('HGET', ATTEMPTS, member)) or '')
  ended.bytes = ended.bytes + r.size
  local set = ended.set
  local n = #set
  set[n + 1], set[n + 2] = NOW, member
  return true
end

-- The sets of ended jobs that share one bound: cancelled jobs are kept like delivered ones.
local KEEPS = { d = { 'd', 'c' }, x = { 'x' } }

-- read_oldest reads the oldest of the sets that share a bound, at most n, in order of their end.
local function read_oldest(t, kind, n)
  local all = {}
  for _, state in ipairs(KEEPS[kind]) do
    local part = call('ZRANGE', t[state], 0, n - 1, 'WITHSCORES')
    for i = 1, #part, 2 do
      all[#all + 1] = { member = part[i], finished = tonumber(part[i + 1]), state = state }
    end
  end
  table.sort(all, function(a, b) return a.finished < b.finished or (a.finished == b.finished and a.member < b.member) end)
  return all
end

-- trim_ended removes ended jobs of a topic, oldest first, that its policy does not keep, at most budget.
local function trim_ended(t, kind, budget)
  local k, removed, count, bytes = retention_limits(t)[kind], 0, 0, 0
  for _, state in ipairs(KEEPS[kind]) do
    count = count + call('ZCARD', t[state])
    bytes = bytes + tonumber(call('HGET', t.stats, state .. 'b') or 0) + (t.plus[state .. 'b'] or 0)
  end
  while budget > removed and count > 0 do
    local all, members, runs = read_oldest(t, kind, count > k.max + 1 and math.min(budget - removed, 100) or 4), {}, {}
    local most, gone, full = math.min(budget - removed, #all), {}, true
    if most > 100 then most = 100 end
    for i = 1, most do members[i] = all[i].member end
    if most == 0 then break end
    local lines = call('HMGET', RUNS, unpack(members))
    members = {}
    for i = 1, most do
      local old = all[i]
      if not (count > k.max or bytes > k.bytes or old.finished + k.age <= now) then
        full = false
        break
      end
      members[i], runs[i] = old.member, lines[i] and parse_run(lines[i])
      gone[old.state] = gone[old.state] or {}
      table.insert(gone[old.state], old.member)
      count = count - 1
      if runs[i] then
        bytes = bytes - runs[i].size
        add_counter(t, old.state .. 'b', -runs[i].size)
      end
    end
    if #members > 0 then
      delete_jobs(members, runs)
      for state, list in pairs(gone) do call('ZREM', t[state], unpack(list)) end
    end
    removed = removed + #members
    if not full then break end
  end
  return removed
end

-- apply_retention lists the jobs that ended in this call, and deletes some of those beyond the retention.
local function apply_retention(t)
  write_attempts()
  call_in_chunks('ZREM', TTL, ended_ttls)
  ended_ttls = {}
  local counts = {}
  for state, ended in pairs(t.ended) do
    counts[state] = ended.n
    add_counter(t, state, ended.n)
    add_counter(t, state .. 'b', ended.bytes)
    call_in_chunks('ZADD', t[state], ended.set)
  end
  if counts.d or counts.c then trim_ended(t, 'd', 2 * ((counts.d or 0) + (counts.c or 0)) + 16) end
  if counts.x then trim_ended(t, 'x', 2 * counts.x + 16) end
end
