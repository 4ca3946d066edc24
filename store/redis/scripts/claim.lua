-- Holds ready and due jobs for a caller.
-- KEYS    those of lib; the queues are the wanted ones
-- ARGV    token, most jobs, most bytes of bodies, margin in ms, then for each queue: most jobs, timeout in ms
-- result  now, revision of the terms, {for each queue: 1 when more is left, 1 when it is blocked},
--         {for each job: position of its queue, member, record, run, ms left of its lease}
local token, most, room, margin = ARGV[A + 1], tonumber(ARGV[A + 2]), tonumber(ARGV[A + 3]), tonumber(ARGV[A + 4])
local lines, jobs, taken, used = {}, {}, 0, 0
local again = call('GET', TOK)

-- answer adds one job to the result.
local function answer(i, member, rec, run, left)
  jobs[#jobs + 1] = tostring(i)
  jobs[#jobs + 1] = member
  jobs[#jobs + 1] = rec
  jobs[#jobs + 1] = run
  jobs[#jobs + 1] = int(left)
end

-- repeated answers what is still held under the token.
local function repeated(q, i)
  local held = call('ZRANGE', q.held, 0, -1, 'WITHSCORES')
  for from = 1, #held, 1000 do
    local members = {}
    for j = from, math.min(from + 999, #held), 2 do members[#members + 1] = held[j] end
    local runs = call('HMGET', RUNS, unpack(members))
    for j, member in ipairs(members) do
      if runs[j] and parse(runs[j]).lease == token .. '@' .. q.n then
        answer(i, member, call('HGET', JOBS, member), runs[j], tonumber(held[from + j * 2 - 1]) - now)
      end
    end
  end
end

-- fill tops ready up from what is due, so that ready's bound never limits a claim.
local function fill(q, want)
  local ready = call('LLEN', q.ready)
  if ready >= want then return end
  local due = call('ZRANGEBYSCORE', q.due, '-inf', int(now), 'LIMIT', 0, want - ready)
  if #due == 0 then return end
  call('RPUSH', q.ready, unpack(due))
  call('ZREM', q.due, unpack(due))
  bump(q.topic, 'ready', #due)
end

-- take moves jobs from ready to held; gone counts members without a record, which cannot be.
local function take(q, i, want, timeout)
  local members = call('LRANGE', q.ready, 0, want - 1)
  if #members == 0 then return end
  local recs = call('HMGET', JOBS, unpack(members))
  local runs = call('HMGET', RUNS, unpack(members))
  local count, leases, lines, lost = 0, {}, {}, 0
  for j, member in ipairs(members) do
    local rec = recs[j]
    if rec then
      local size = be(rec, 10, 12)
      if taken > 0 and used + size > room then break end
      local own = be(rec, 7, 9)
      local left = (own > 0 and own or timeout) + margin
      local r = runs[j] and parse(runs[j]) or fresh(rec)
      r.lease, r.size = token .. '@' .. q.n, #rec
      local line = pack(r)
      leases[#leases + 1] = int(now + left)
      leases[#leases + 1] = member
      lines[#lines + 1] = member
      lines[#lines + 1] = line
      answer(i, member, rec, line, left)
      taken, used = taken + 1, used + size
    else
      lost = lost + 1
    end
    count = j
  end
  if count == 0 then return end
  many('ZADD', q.held, leases)
  many('HSET', RUNS, lines)
  call('LTRIM', q.ready, count, -1)
  bump(q.topic, 'ready', -count)
  bump(q.topic, 'held', count - lost)
end

for i, q in ipairs(queues) do
  local a = A + 4 + (i - 1) * 2
  local k = terms(q.topic)
  if again then
    repeated(q, i)
  else
    local want = math.min(tonumber(ARGV[a + 1]), most - taken, k.limit - call('ZCARD', q.held))
    if not k.paused and want > 0 and (taken == 0 or used < room) then
      fill(q, want)
      take(q, i, want, tonumber(ARGV[a + 2]))
    end
  end
  local more, blocked = look(q)
  lines[i * 2 - 1] = (more and not blocked) and '1' or '0'
  lines[i * 2] = blocked and '1' or '0'
end
close()
if not again then call('SET', TOK, '1', 'EX', MEMORY) end
return { int(now), call('HGET', TERMS, '') or '0', lines, jobs }
