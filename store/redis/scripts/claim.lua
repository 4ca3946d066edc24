-- Holds ready and due jobs for a caller.
-- KEYS    those of lib, the queues being the wanted ones; settings; then, when the call follows a settlement in the same
--         trip, the memory of that settlement
-- ARGV    token, most jobs, most bytes of bodies, margin in ms, 1 when the call follows a settlement, slack in ms, then
--         for each queue: most jobs, timeout in ms; then for each, unless nobody knows any, the revision of its lane's
--         settings that the caller knows
-- result  EARLY when the settlement has not run yet, else: now, revision of the terms, {for each queue, as letters: m more
--         is left, b it is blocked, o its breaker is open}, {for each job: position of its queue, member, record, run,
--         ms left of its lease}, {position of each queue whose lane's settings are not those known, settings ('' none)}
local token, most, room, margin = ARGV[A + 1], tonumber(ARGV[A + 2]), tonumber(ARGV[A + 3]), tonumber(ARGV[A + 4])
local lines, jobs, lanes, taken, used = {}, {}, {}, 0, 0
local FEW, MANY, MISSED, missed, size = 4, 64, 4194304, 0, 16384 -- jobs of a portion, least and most; bytes
local slack, SETTINGS = tonumber(ARGV[A + 6]), KEYS[K + 1]
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

-- first is the run of a job that is claimed for the first time, marked with flags.
local function first(lease, rec, marks)
  local print, due = string.byte(rec, 2) % 2 == 1, int(be(rec, 13, 18))
  return lease .. (print and ' 0p' or ' 0') .. marks .. ' ' .. #rec .. ' - ' .. NOW .. ' - ' .. due .. ' ' .. due .. ' 1 0 0 0 0'
end

-- next is the run of one that was claimed or edited before.
local function next(lease, rec, marks, line)
  local r = parse(line)
  r.lease, r.size, r.fin = lease, #rec, NOW
  if string.find(r.flags, '[ro]') then r.flags = string.gsub(r.flags, '[ro]', '') end
  if marks ~= '' then r.flags = r.flags .. marks end
  return pack(r)
end

-- take moves jobs from ready to held; lost counts members without a record, which cannot be. Records are read in portions,
-- by the size of the one before (of the first, a guess), so that few are read for which there is no room: missed counts the bytes of those.
local function take(q, i, want, timeout)
  local members = call('LRANGE', q.ready, 0, want - 1)
  if #members == 0 then return end
  local count, leases, fresh, lost = 0, {}, {}, 0
  local lease, k = token .. '@' .. q.n, limits(q)
  local marks = (k.starts and 'r' or '') .. (q.gate and q.gate.open and 'o' or '')
  local last, lasts, deadline
  local fits = true
  while fits and count < #members do
    local upto = math.min(#members, count + math.max(FEW, math.min(MANY, floor((room - used) / size))))
    local recs = call('HMGET', JOBS, unpack(members, count + 1, upto))
    local runs = call('HMGET', RUNS, unpack(members, count + 1, upto))
    for j = 1, #recs do
      local member, rec, line = members[count + 1], recs[j], runs[j]
      if rec then
        local body = be(rec, 10, 12)
        size = #rec
        if taken > 0 and used + body > room then
          fits, missed = false, missed + body
          break
        end
        local left = be(rec, 7, 9)
        left = (left > 0 and left or timeout) + margin
        if left ~= last then last, lasts, deadline = left, int(left), int(now + left) end
        line = line and next(lease, rec, marks, line) or first(lease, rec, marks)
        leases[#leases + 1] = deadline
        leases[#leases + 1] = member
        fresh[#fresh + 1] = member
        fresh[#fresh + 1] = line
        answer(i, member, rec, line, lasts)
        taken, used = taken + 1, used + body
      else
        lost = lost + 1
      end
      count = count + 1
    end
  end
  if count == 0 then return end
  many('ZADD', q.held, leases)
  many('HSET', RUNS, fresh)
  call('LTRIM', q.ready, count, -1)
  bump(q.topic, 'ready', -count)
  bump(q.topic, 'held', count - lost)
  if k.starts and count > lost then
    local g = gate(q)
    grant(g.starts, now, later + slack, count - lost, k.starts, k.per)
    g.changed = true
  end
end

-- A claim can empty ready before the ring is repeated: what is due next then comes before the look that was planned.
watch()
for i, q in ipairs(queues) do
  local a = A + 6 + (i - 1) * 2
  if again then
    repeated(q, i)
  else
    local k, g = limits(q), q.gate
    if g and k.starts then
      local before = #g.starts
      g.starts = counted(g.starts, k.per, now)
      g.changed = g.changed or #g.starts < before
    end
    local want = math.min(tonumber(ARGV[a + 1]), most - taken, (free(q, call('ZCARD', q.held))))
    if want > 0 and (taken == 0 or used <= room and missed < MISSED) then
      fill(q, want)
      take(q, i, want, tonumber(ARGV[a + 2]))
    end
  end
  local more, blocked = look(q)
  local open = q.gate and q.gate.open and 'o' or ''
  lines[i] = (blocked and 'b' or more and 'm' or '') .. open
  local revision = q.lane and string.match(q.lane, '^%d+') or '0'
  if revision ~= (ARGV[A + 6 + nq * 2 + i] or '0') then
    lanes[#lanes + 1] = i
    lanes[#lanes + 1] = q.lane and call('HGET', SETTINGS, ARGV[3 + i * 3]) or ''
  end
end
close()
call('SET', TOK, '1', 'EX', MEMORY)
return { NOW, call('HGET', TERMS, '') or '0', lines, jobs, lanes }
