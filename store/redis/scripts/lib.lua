-- What every script begins with, after window.lua: the keys by name, the store's clock, and the moves that several
-- scripts share.
--
-- KEYS  1 jobs  2 runs  3 tries  4 ids  5 forget  6 agenda  7 rings  8 bell  9 wake  10 terms  11 names
--       12 outbox  13 outq  14 redo  15 off  16 gates  17 gateq  18 lanes  19 ttl
--       20 the call's memory (tok:<token>:<kind>)
--       then for each queue: due, ready, held; then for each topic: stats, done, dead, gone, open
-- ARGV  1 number of queues  2 number of topics  3 terms of a topic that has none of its own
--       then for each queue: its number, the position of its topic, its name; then each topic's name
--       then, from ARGV[A + 1] on, what the script's own table says
-- An error STALE says that a number does not carry the name that the caller knows it by.
--
-- When memory is full, Redis refuses commands that may take more of it, but only until a script has written for the
-- first time. So a script that must go on then, because it frees memory in the end, begins with allow(); one that must
-- be refused whole begins with a write that Redis refuses.
local call, floor = redis.call, math.floor
local byte, sub, match, find = string.byte, string.sub, string.match, string.find
local JOBS, RUNS, TRIES, IDS, FORGET = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5]
local AGENDA, RINGS, BELL, WAKE, TERMS = KEYS[6], KEYS[7], KEYS[8], KEYS[9], KEYS[10]
local NAMES, OUTBOX, OUTQ, REDO, OFF = KEYS[11], KEYS[12], KEYS[13], KEYS[14], KEYS[15]
local GATES, GATEQ, LANES, TTL, TOK = KEYS[16], KEYS[17], KEYS[18], KEYS[19], KEYS[20]
local NEVER, READY_MAX, AGAIN, MEMORY, LANE_MEMORY = 99999999999999, 1024, 1000, 60, 3600000
local nq, nt = tonumber(ARGV[1]), tonumber(ARGV[2])
local A, K = 3 + nq * 3 + nt, 20 + nq * 3 + nt * 5

-- The clock in milliseconds: now rounds down, for comparing; later rounds up, for adding waits, so that none is short.
local clock = call('TIME')
local now = tonumber(clock[1]) * 1000 + floor(tonumber(clock[2]) / 1000)
local later = tonumber(clock[2]) % 1000 > 0 and now + 1 or now

local topics, queues = {}, {}
for i = 1, nt do
  local k = 20 + nq * 3 + (i - 1) * 5
  topics[i] = { name = ARGV[3 + nq * 3 + i], stats = KEYS[k + 1], d = KEYS[k + 2], x = KEYS[k + 3], c = KEYS[k + 4],
    open = KEYS[k + 5], plus = {}, ended = {} }
end
if nq > 0 then
  local numbers = {}
  for i = 1, nq do
    local k, a = 20 + (i - 1) * 3, 3 + (i - 1) * 3
    queues[i] = { n = ARGV[a + 1], topic = topics[tonumber(ARGV[a + 2])], due = KEYS[k + 1], ready = KEYS[k + 2],
      held = KEYS[k + 3] }
    numbers[i] = ARGV[a + 1]
  end
  local names = call('HMGET', NAMES, unpack(numbers))
  for i = 1, nq do
    if names[i] ~= ARGV[3 + i * 3] then return redis.error_reply('STALE queue number') end
  end
  -- Most shards have neither, and then nothing more is read.
  if call('EXISTS', GATES, LANES) > 0 then
    local gates, lanes = call('HMGET', GATES, unpack(numbers)), call('HMGET', LANES, unpack(names))
    for i = 1, nq do
      local hold, open, over, starts, rest = match(gates[i] or '', '^(%d+) (%d) (%d+) (%S+)(.*)$')
      if hold then
        queues[i].gate = { hold = tonumber(hold), open = open == '1', over = tonumber(over), starts = groups(starts),
          rest = rest, stored = true, was = open == '1' }
      end
      queues[i].lane = lanes[i]
    end
  end
end

-- allow is the first write of a script that goes on while memory is full. The call's memory is written anew in the end.
local function allow() call('DEL', TOK) end

-- int writes a number, which must be whole; text is one already. Joined with text, Lua writes 14 digits of a number, in less
-- time.
local function int(n)
  if type(n) == 'string' then return n end
  return n < 1e14 and n > -1e14 and n .. '' or string.format('%.0f', n)
end
-- plus writes the number that follows a text of one.
local pluses = {}
local function plus(n)
  local text = pluses[n]
  if not text then
    text = int(n + 1)
    pluses[n] = text
  end
  return text
end
local NOW = int(now)

-- many calls a command with a long list of arguments, in chunks (of an even length) that fit Lua's stack.
local function many(command, key, list)
  for from = 1, #list, 1000 do
    call(command, key, unpack(list, from, math.min(from + 999, #list)))
  end
end

-- terms resolves what scripts need of a topic's policy, but for what is kept: that is for keeps. starts is nil where no
-- rate is.
local function terms(t)
  if not t.terms then
    t.line = call('HGET', TERMS, t.name) or ARGV[3]
    local paused, limit, starts, per = match(t.line,
      '^%d+ (%d) (%d+) %d+ %d+ %d+ %d+ %d+ %d+ %d+ ?(%d*) ?(%d*)')
    t.terms = { paused = paused == '1', limit = tonumber(limit) }
    if starts ~= '' and starts ~= '0' then t.terms.starts, t.terms.per = tonumber(starts), tonumber(per) end
  end
  return t.terms
end
local function keeps(t)
  if not t.keeps then
    terms(t)
    local dage, dmax, dbytes, xage, xmax, xbytes, window = match(t.line,
      '^%d+ %d %d+ (%d+) (%d+) (%d+) (%d+) (%d+) (%d+) (%d+)')
    t.keeps = { window = tonumber(window),
      d = { age = tonumber(dage), max = tonumber(dmax), bytes = tonumber(dbytes) },
      x = { age = tonumber(xage), max = tonumber(xmax), bytes = tonumber(xbytes) } }
    t.keeps.c = t.keeps.d
  end
  return t.keeps
end

-- limits resolves a queue's: those of its lane's own settings over its topic's.
local function limits(q)
  local k = terms(q.topic)
  if not q.lane then return k end
  if not q.limits then
    local paused, limit, starts, per = match(q.lane, '^%d+ (%d) (%d+) (%d+) (%d+)')
    q.limits = { paused = k.paused or paused == '1', limit = limit ~= '0' and tonumber(limit) or k.limit,
      starts = k.starts, per = k.per }
    if starts ~= '0' then q.limits.starts, q.limits.per = tonumber(starts), tonumber(per) end
  end
  return q.limits
end

local function bump(t, field, n) t.plus[field] = (t.plus[field] or 0) + n end

-- The fixed head of a record: 1 version, 2 flags, 3-6 queue number, 7-9 timeout in ms, 10-12 length of the body,
-- 13-18 due in ms, then the body, then tagged fields. be reads a number of 3, 4 or 6 bytes.
local function be(s, from, to)
  local a, b, c, d, e, f = byte(s, from, to)
  local n = (a * 256 + b) * 256 + c
  if d then n = n * 256 + d end
  if f then n = (n * 256 + e) * 256 + f end
  return n
end
-- named is the name of a record's queue, '' when there is none.
local function named(rec)
  return rec and #rec >= 18 and call('HGET', NAMES, int(be(rec, 3, 6))) or ''
end
local function bytes(n, width)
  local s = ''
  for _ = 1, width do
    s = string.char(n % 256) .. s
    n = floor(n / 256)
  end
  return s
end

-- A run is a line: lease flags size state finished reason due since version round made tries lost. The lease is
-- token@queue, or - when nobody holds the job; flags are letters (m cancel requested, p its id has a print, t it has a
-- record of attempts, r and o that its claim was under a rate or a probe, 0 none); state is - or d (delivered), x (dead), c (cancelled); finished is when it ended, of a held
-- job when it was claimed. Then may follow the status of the last answer, and more fields.
-- parse leaves numbers as text: Lua turns them into numbers where it calculates, and only comparing needs tonumber. It
-- leaves due since version round, which an attempt mostly does not change, in one piece, the course: each string that a
-- script makes costs time, and it has runs to take apart for each job that is settled. turned is a course from another
-- due moment on; whoever changes more of it takes it apart. The fields go into r, where there is a table to use again.
local function parse(s, r)
  local lease, flags, size, state, fin, reason, course, made, tries, lost, rest = match(s,
    '^(%S+) (%S+) (%d+) (%S) (%d+) (%S+) (%d+ %d+ %d+ %d+) (%d+) (%d+) (%d+)(.*)$')
  r = r or {}
  r.lease, r.flags, r.size, r.state, r.fin, r.reason, r.course = lease, flags, size, state, fin, reason, course
  r.made, r.tries, r.lost, r.rest, r.text = made, tries, lost, rest, nil
  return r
end
local function pack(r)
  return r.lease .. ' ' .. r.flags .. ' ' .. r.size .. ' ' .. r.state .. ' ' .. r.fin .. ' ' .. r.reason .. ' ' ..
    r.course .. ' ' .. r.made .. ' ' .. r.tries .. ' ' .. r.lost .. r.rest
end
local function apart(course) return match(course, '^(%d+) (%d+) (%d+) (%d+)$') end
local function joined(due, since, ver, round) return int(due) .. ' ' .. int(since) .. ' ' .. ver .. ' ' .. round end
local function turned(course, due) return int(due) .. match(course, ' .*') end
local function flagged(r, letter) return r.flags ~= '0' and find(r.flags, letter, 1, true) ~= nil end
local function flag(r, letter) if not flagged(r, letter) then r.flags = r.flags .. letter end end
local function unflag(r, letter) if flagged(r, letter) then r.flags = (string.gsub(r.flags, letter, '')) end end
-- fresh is the run of a job that never had one.
local function fresh(rec)
  local due = be(rec, 13, 18)
  return { lease = '-', flags = byte(rec, 2) % 2 == 1 and '0p' or '0', size = #rec, state = '-', fin = '0',
    reason = '-', course = joined(due, due, 1, 0), made = '0', tries = '0', lost = '0', rest = '' }
end

-- crowded takes the oldest line out of a record that has more than 20 of the last line's sort: counted attempts (k is attempt
-- or lost) are one, everything else is the other.
local function crowded(text)
  local lines, counts, sort = {}, { [true] = 0, [false] = 0 }, false
  for line in string.gmatch(text, '[^\n]*\n') do
    local k = match(line, '"k":"(%a+)"')
    sort = k == 'attempt' or k == 'lost'
    counts[sort] = counts[sort] + 1
    lines[#lines + 1] = { line, sort }
  end
  for i, line in ipairs(lines) do
    if counts[sort] <= 20 then break end
    if line[2] == sort then
      lines[i], counts[sort] = false, counts[sort] - 1
    end
  end
  local kept = {}
  for _, line in ipairs(lines) do
    if line then kept[#kept + 1] = line[1] end
  end
  return table.concat(kept)
end

-- note adds a line, with its end, to a job's record and keeps the newest 20 of its sort; record writes what was noted,
-- and unnote leaves out what was noted last, when that is a job's that goes at once.
local noted = {}
local function note(r, member, line)
  local text = line
  if flagged(r, 't') then
    text = (call('HGET', TRIES, member) or '') .. line
    local _, count = string.gsub(text, '\n', '\n')
    if count > 20 then text = crowded(text) end
  else
    r.flags = r.flags .. 't'
  end
  local n = #noted
  noted[n + 1], noted[n + 2], r.text = member, text, text
end
local function unnote(member)
  local n = #noted
  if noted[n - 1] == member then noted[n - 1], noted[n] = nil, nil end
end
local function record()
  many('HSET', TRIES, noted)
  noted = {}
end

-- instant turns a caller's wish into a moment: '@<ms>' is one already (never before now), a number is a wait from base.
local function instant(wish, base)
  if sub(wish, 1, 1) == '@' then return tonumber(sub(wish, 2)) end
  local wait = tonumber(wish)
  return wait > 0 and base + wait or now
end
-- expiry is the record's tag for an expiry; wish '' is none.
local function expiry(wish, base)
  if wish == '' then return '' end
  return '\129\6' .. bytes(instant(wish, base), 6)
end

-- A job's time to live ends with the earlier of its expiry and of the end of its topic's max_age, where it has one of the
-- two: its score in TTL. ends is that end, nil for none: expires is nil and age 0 where there is none. setTTL writes the
-- ends of jobs, as pairs.
local function ends(expires, since, age)
  if age > 0 and (not expires or since + age < expires) then return since + age end
  return expires
end
local function setTTL(pairs) many('ZADD', TTL, pairs) end
-- lifetime reads a record's expiry (nil: it has none), and the max_age of its topic in ms (0: it had none).
local function lifetime(rec)
  local i, expires, age = 19 + be(rec, 10, 12), nil, 0
  while i <= #rec do
    local tag, size, shift, from = byte(rec, i), 0, 1, i + 1
    repeat
      local b = byte(rec, from)
      if not b then return expires, age end
      size, shift, from = size + b % 128 * shift, shift * 128, from + 1
    until b < 128
    if size == 6 and from + 5 <= #rec then
      if tag == 129 then expires = be(rec, from, from + 5) elseif tag == 130 then age = be(rec, from, from + 5) end
    end
    i = from + size
  end
  return expires, age
end

-- defer makes a job wait in due; arrange writes it.
local function defer(q, due, member)
  local dues = q.dues or {}
  local n = #dues
  dues[n + 1], dues[n + 2], q.dues = int(due), member, dues
end

-- place puts a job that nobody holds where it belongs; arrange writes it. Straight to ready only when it is due and
-- nothing of its queue is due before it.
local function place(q, member, due)
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
      if q.count == 1 then q.ring = true end
      return
    end
    q.behind = true
  end
  defer(q, due, member)
end

-- watch notes the agenda's head, so that look can tell whether something came before it.
local head, early
local function watch()
  local first = call('ZRANGE', AGENDA, 0, 0, 'WITHSCORES')
  head = first[2] and tonumber(first[2]) or NEVER
end

-- arrange writes what place and defer decided.
local function arrange(q)
  if q.dues then many('ZADD', q.due, q.dues) end
  if q.readies then
    many('RPUSH', q.ready, q.readies)
    bump(q.topic, 'ready', #q.readies)
  end
  q.dues, q.readies = nil, nil
end

-- holds is how many jobs of a queue are held. It is asked once; whoever changes that says it, or forgets it.
local function holds(q)
  q.holds = q.holds or call('ZCARD', q.held)
  return q.holds
end

-- A gate is what keeps a whole queue back: a line 'hold open over starts since'. It is held back until hold; open is 1 while
-- its breaker is; starts are those that its rate counts; over is when nothing of it will matter any more; since is when the
-- hold was set. A queue without a gate has none of it. More fields may follow.
local function gate(q)
  if not q.gate then q.gate = { hold = 0, open = false, over = 0, starts = {}, rest = '' } end
  return q.gate
end

-- held_since notes when a gate's hold was set.
local function held_since(g, at) g.rest = ' ' .. at .. (match(g.rest, '^ %d+(.*)$') or g.rest) end

-- free is how many jobs of a queue may be claimed now; when none may, also when time alone ends that.
-- A breaker that nobody probed for a while after its hold is closed.
local function free(q)
  local k, g, held, till = limits(q), q.gate, holds(q), 0
  local n = k.limit - held
  if g and g.open and held == 0 and now > g.hold + LANE_MEMORY then g.open, g.changed = false, true end
  if k.paused or n <= 0 then return 0, NEVER end
  if not g then return k.starts and math.min(n, k.starts) or n end
  if g.open then
    if held > 0 then return 0, NEVER end
    n = 1
  end
  if k.starts then
    local list, count = counted(g.starts, k.per, now)
    if count >= k.starts then till = fits(list, count, k.starts, k.per) end
    n = math.min(n, k.starts - count)
  end
  till = math.max(till, g.hold)
  if till > now then return 0, till end
  return n
end

-- save writes a queue's gate, or removes it when it says nothing any more. A gate is looked at again when it is over, for
-- that; one of a probe that is out when that ends.
local function save(q, held)
  local g, k = q.gate, limits(q)
  local memory, over, list = 0, g.hold, g.starts
  if g.open then memory = held > 0 and NEVER or g.hold + LANE_MEMORY end
  if k.starts then
    list = counted(list, k.per, now)
    if list[1] then over = math.max(over, list[#list].last + k.per) end
  elseif list[1] then
    over = math.max(over, g.over)
  end
  if g.open then over = math.max(over, memory + 1) end
  if over <= now then
    if g.stored then
      call('HDEL', GATES, q.n)
      call('ZREM', GATEQ, q.n)
      if g.was then call('ZREM', q.topic.open, q.n) end
    end
    q.gate = nil
  elseif g.changed or over ~= g.over then
    call('HSET', GATES, q.n, table.concat({ int(g.hold), g.open and 1 or 0, int(over), grouped(g.starts) .. g.rest },
      ' '))
    call('ZADD', GATEQ, int(over), q.n)
    if g.open then
      call('ZADD', q.topic.open, int(memory), q.n)
    elseif g.was then
      call('ZREM', q.topic.open, q.n)
    end
  end
end

-- look writes the next moment at which someone must look at a queue, and rings the bell where q.ring wishes it and
-- there is something to claim; and what became of its gate. A lapse that is to be left alone for now is looked at again
-- at least, and q.off says so; q.lapse is the first, where it is known. With q.idle, a queue that had no job before keeps
-- the moment since when. It answers whether the queue has claimable jobs, and whether it is blocked.
local function look(q, least)
  arrange(q)
  local held, ready = holds(q), call('LLEN', q.ready)
  local n, till = free(q)
  if q.gate then save(q, held) end
  local blocked = n <= 0
  local first = call('ZRANGE', q.due, 0, 0, 'WITHSCORES')[2]
  local moment, rung = nil, false
  first = first and tonumber(first)
  local claimable = ready > 0 or (first ~= nil and first <= now)
  if not (held > 0 or ready > 0 or first) then
    -- Since when it has no job, see forget.lua. A queue that is not on the agenda had none before.
    if call('ZREM', AGENDA, q.n) == 1 or not (q.idle and match(call('HGET', RINGS, q.n) or '', '^%-')) then
      call('HSET', RINGS, q.n, '-' .. NOW)
    end
    return false, blocked
  end
  if blocked then
    moment = till
    if till < NEVER then
      call('HDEL', RINGS, q.n) -- so that it rings at once then
      if ready == 0 then moment = math.max(till, first or NEVER) end
    end
  elseif claimable and q.ring then
    call('HSET', RINGS, q.n, NOW)
    moment, rung = now + AGAIN, true
  elseif ready > 0 then
    -- A ring in the future is one that the clock was set back behind.
    local last = tonumber(call('HGET', RINGS, q.n) or 0)
    moment, rung = last > now and now or last + AGAIN, true
  else
    moment = first or NEVER
  end
  if held > 0 then
    local lapse = q.lapse or tonumber(call('ZRANGE', q.held, 0, 0, 'WITHSCORES')[2])
    if least and lapse < least then lapse, q.off = least, true end
    moment = math.min(moment, lapse)
  end
  call('ZADD', AGENDA, int(moment), q.n)
  if claimable and q.ring and not blocked and call('LLEN', BELL) < call('ZCARD', AGENDA) then
    call('RPUSH', BELL, q.n)
  end
  if head and moment < head and not rung then early = true end
  return claimable, blocked
end

-- bear writes a birth to the outbox, after all that are there, and wakes who brings it home. Those of one millisecond are
-- told apart by parts of it.
local born
local function bear(member, entry)
  if call('HSETNX', OUTBOX, member, entry) == 0 then return end
  if not born then
    local last = call('ZRANGE', OUTQ, -1, -1, 'WITHSCORES')[2]
    born = last and tonumber(last) or 0
  end
  born = math.max(now, born + 0.001)
  call('ZADD', OUTQ, string.format('%.3f', born), member)
  early = true
end

-- drop removes ended jobs for good. An id outlives its job until its window has passed: then Sweep forgets it.
local function drop(members, runs)
  many('HDEL', JOBS, members)
  many('HDEL', TRIES, members)
  for i, member in ipairs(members) do
    if runs[i] and flagged(runs[i], 'p') then
      local known = call('HGET', IDS, member)
      local forget = known and match(sub(known, 2 + byte(known, 1)), '^%S %d+ %S+ (%d+)')
      if forget then call('ZADD', FORGET, forget, member) end
    end
  end
  many('HDEL', RUNS, members)
end

-- anyTTL tells whether any job's time to live ends; endedTTL are those that ended in this call, which need none any more.
local knownTTL, endedTTL = nil, {}
local function anyTTL()
  if knownTTL == nil then knownTTL = call('EXISTS', TTL) == 1 end
  return knownTTL
end

-- finish ends a job: state d, x or c. The caller has taken it out of due, ready or held, writes r when it is kept, and
-- calls retain in the end. It answers whether the job is kept.
local function finish(q, member, r, state, reason)
  local t, k = q.topic, keeps(q.topic)
  local ended = t.ended[state]
  if not ended then
    ended = { n = 0, bytes = 0, set = {} }
    t.ended[state] = ended
  end
  ended.n = ended.n + 1
  if anyTTL() then endedTTL[#endedTTL + 1] = member end
  r.lease, r.state, r.fin, r.reason = '-', state, NOW, reason
  unflag(r, 'm')
  if flagged(r, 'p') then
    local known = call('HGET', IDS, member)
    if known then
      local forget = int(later + k.window)
      call('HSET', IDS, member, sub(known, 1, 1 + byte(known, 1)) ..
        table.concat({ state, NOW, reason, forget }, ' '))
      call('ZADD', FORGET, forget, member)
    end
  end
  if k[state].age <= 0 or k[state].max <= 0 or k[state].bytes <= 0 then
    unnote(member)
    drop({ member }, { r })
    return false
  end
  r.size = r.size + #(r.text or (flagged(r, 't') and call('HGET', TRIES, member)) or '')
  ended.bytes = ended.bytes + r.size
  local set = ended.set
  local n = #set
  set[n + 1], set[n + 2] = NOW, member
  return true
end

-- The sets of ended jobs that share one bound: cancelled jobs are kept like delivered ones.
local KEEPS = { d = { 'd', 'c' }, x = { 'x' } }

-- oldest reads the oldest of the sets that share a bound, at most n, in order of their end.
local function oldest(t, kind, n)
  local all = {}
  for _, state in ipairs(KEEPS[kind]) do
    local part = call('ZRANGE', t[state], 0, n - 1, 'WITHSCORES')
    for i = 1, #part, 2 do
      all[#all + 1] = { member = part[i], fin = tonumber(part[i + 1]), state = state }
    end
  end
  table.sort(all, function(a, b) return a.fin < b.fin or (a.fin == b.fin and a.member < b.member) end)
  return all
end

-- trim removes ended jobs of a topic, oldest first, that its policy does not keep, at most budget.
local function trim(t, kind, budget)
  local k, removed, count, held = keeps(t)[kind], 0, 0, 0
  for _, state in ipairs(KEEPS[kind]) do
    count = count + call('ZCARD', t[state])
    held = held + tonumber(call('HGET', t.stats, state .. 'b') or 0) + (t.plus[state .. 'b'] or 0)
  end
  while budget > removed and count > 0 do
    local all, members, runs = oldest(t, kind, count > k.max + 1 and math.min(budget - removed, 100) or 4), {}, {}
    local most, gone, full = math.min(budget - removed, #all), {}, true
    if most > 100 then most = 100 end
    for i = 1, most do members[i] = all[i].member end
    if most == 0 then break end
    local lines = call('HMGET', RUNS, unpack(members))
    members = {}
    for i = 1, most do
      local old = all[i]
      if not (count > k.max or held > k.bytes or old.fin + k.age <= now) then
        full = false
        break
      end
      members[i], runs[i] = old.member, lines[i] and parse(lines[i])
      gone[old.state] = gone[old.state] or {}
      table.insert(gone[old.state], old.member)
      count = count - 1
      if runs[i] then
        held = held - runs[i].size
        bump(t, old.state .. 'b', -runs[i].size)
      end
    end
    if #members > 0 then
      drop(members, runs)
      for state, list in pairs(gone) do call('ZREM', t[state], unpack(list)) end
    end
    removed = removed + #members
    if not full then break end
  end
  return removed
end

-- retain keeps the jobs that ended in this call, and makes room for them, also by removing some of them again.
local function retain(t)
  record()
  many('ZREM', TTL, endedTTL)
  endedTTL = {}
  local counts = {}
  for state, ended in pairs(t.ended) do
    counts[state] = ended.n
    bump(t, state, ended.n)
    bump(t, state .. 'b', ended.bytes)
    many('ZADD', t[state], ended.set)
  end
  if counts.d or counts.c then trim(t, 'd', 2 * ((counts.d or 0) + (counts.c or 0)) + 16) end
  if counts.x then trim(t, 'x', 2 * counts.x + 16) end
end

-- replayed answers a call on one job as its first sending was answered; nil when there was none. The job may have gone
-- on, or be gone, since.
local function replayed(member)
  local again = call('GET', TOK)
  if not again then return nil end
  local code, run = match(again, '^!(%S+) ?(.*)$')
  if code then return { code, int(now), call('HGET', JOBS, member) or '', run } end
  local line, rec = match(again, '^([^\n]*)\n?(.*)$')
  if rec == '' then rec = call('HGET', JOBS, member) or '' end
  return { rec == '' and 'none' or 'ok', int(now), rec, line }
end

-- refuse answers a call on one job with a refusal, and remembers it.
local function refuse(member, code, run)
  call('SET', TOK, '!' .. code .. ' ' .. (run or ''), 'EX', MEMORY)
  return { code, int(now), call('HGET', JOBS, member) or '', run or '' }
end

-- close ends a call that changed something: attempts, counters, and the push that tells the carrier of an earlier
-- moment. Counters are written as sums, not as differences: where a crash of Redis leaves a part of a script behind, the
-- next one to change a counter makes it right.
local function close()
  record()
  for _, t in ipairs(topics) do
    local sums, n = {}, 0
    for field, plus in pairs(t.plus) do
      if plus ~= 0 then
        n = n + 1
        sums[n] = field
      end
    end
    if n > 0 then
      local before = call('HMGET', t.stats, unpack(sums))
      for i = n, 1, -1 do
        local field = sums[i]
        sums[2 * i - 1], sums[2 * i] = field, (before[i] or 0) + t.plus[field]
      end
      call('HSET', t.stats, unpack(sums))
    end
  end
  if early and call('LLEN', WAKE) == 0 then call('RPUSH', WAKE, '1') end
end

