-- Holds ready and due jobs for a caller.
-- KEYS    those of lib, the queues being the wanted ones; then, when the call follows a settlement in the same trip, the
--         memory of that settlement
-- ARGV    token, most jobs, most bytes of bodies, margin in ms, 1 when the call follows a settlement, then for each
--         queue: most jobs, timeout in ms
-- result  EARLY when the settlement has not run yet, else: now, revision of the terms, {for each queue: 1 when more is left, 1 when it is blocked},
--         {for each job: position of its queue, member, record, run, ms left of its lease}
local token, most, room, margin = ARGV[A + 1], tonumber(ARGV[A + 2]), tonumber(ARGV[A + 3]), tonumber(ARGV[A + 4])
local lines, jobs, taken, used = {}, {}, 0, 0
if ARGV[A + 5] == '1' and call('EXISTS', KEYS[#KEYS]) == 0 then return 'EARLY' end
local again = call('GET', TOK)
allow()

-- answer adds one job to the result.
local function answer(i, member, rec, run, left)
  local n = #jobs
  jobs[n + 1], jobs[n + 2], jobs[n + 3], jobs[n + 4], jobs[n + 5] = i, member, rec, run, left
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
        answer(i, member, call('HGET', JOBS, member), runs[j], int(held[from + j * 2 - 1] - now))
      end
    end
  end
end

-- fill tops ready up from what is due, so that ready's bound never limits a claim.
local function fill(q, want)
  local ready = call('LLEN', q.ready)
  if ready >= want then return end
  local due = call('ZRANGEBYSCORE', q.due, '-inf', NOW, 'LIMIT', 0, want - ready)
  if #due == 0 then return end
  call('RPUSH', q.ready, unpack(due))
  call('ZREM', q.due, unpack(due))
  bump(q.topic, 'ready', #due)
end

-- first is the run of a job that is claimed for the first time.
local function first(lease, rec)
  local print, due = string.byte(rec, 2) % 2 == 1, int(be(rec, 13, 18))
  return lease .. (print and ' 0p ' or ' 0 ') .. #rec .. ' - ' .. NOW .. ' - ' .. due .. ' ' .. due .. ' 1 0 0 0 0'
end

-- next is the run of one that was claimed or edited before.
local function next(lease, rec, line)
  local r = parse(line)
  r.lease, r.size, r.fin = lease, #rec, NOW
  return pack(r)
end

-- take moves jobs from ready to held; lost counts members without a record, which cannot be.
local function take(q, i, want, timeout)
  local members = call('LRANGE', q.ready, 0, want - 1)
  if #members == 0 then return end
  local recs = call('HMGET', JOBS, unpack(members))
  local runs = call('HMGET', RUNS, unpack(members))
  local count, leases, fresh, lost = 0, {}, {}, 0
  local lease = token .. '@' .. q.n
  local last, lasts, deadline
  for j = 1, #members do
    local member, rec = members[j], recs[j]
    if rec then
      local size = be(rec, 10, 12)
      if taken > 0 and used + size > room then break end
      local left = be(rec, 7, 9)
      left = (left > 0 and left or timeout) + margin
      if left ~= last then last, lasts, deadline = left, int(left), int(now + left) end
      local line = runs[j] and next(lease, rec, runs[j]) or first(lease, rec)
      leases[#leases + 1] = deadline
      leases[#leases + 1] = member
      fresh[#fresh + 1] = member
      fresh[#fresh + 1] = line
      answer(i, member, rec, line, lasts)
      taken, used = taken + 1, used + size
    else
      lost = lost + 1
    end
    count = j
  end
  if count == 0 then return end
  many('ZADD', q.held, leases)
  many('HSET', RUNS, fresh)
  call('LTRIM', q.ready, count, -1)
  bump(q.topic, 'ready', -count)
  bump(q.topic, 'held', count - lost)
end

-- A claim can empty ready before the ring is repeated: what is due next then comes before the look that was planned.
watch()
for i, q in ipairs(queues) do
  local a = A + 5 + (i - 1) * 2
  local k = terms(q.topic)
  if again then
    repeated(q, i)
  else
    local want = math.min(tonumber(ARGV[a + 1]), most - taken, k.limit - call('ZCARD', q.held))
    if not k.paused and want > 0 and (taken == 0 or used <= room) then
      fill(q, want)
      take(q, i, want, tonumber(ARGV[a + 2]))
    end
  end
  local more, blocked = look(q)
  lines[i * 2 - 1] = (more and not blocked) and '1' or '0'
  lines[i * 2] = blocked and '1' or '0'
end
close()
call('SET', TOK, '1', 'EX', MEMORY)
return { NOW, call('HGET', TERMS, '') or '0', lines, jobs }
