-- Sends ended jobs on another round.
-- KEYS    those of keys.lua
-- ARGV    most bytes of records to answer, most to remember, then for each item: position of its queue (0 there is no such
--         job), member, due as '@ms' or a wait in ms, the field of its URL ('' it stays), state it must be in (d, x, c, '' any of them), new expiry ('' it stays, or a wait)
-- result  again when a job is of another queue, else now, then for each item: {code, run, record, name of its queue}; code
--         is ok, bare when its record is left without its body by the bound, none, state, expired when its expiry would
--         come before it is due, or form when the record cannot be read here
local at, entries = A + 2, floor((#ARGV - A - 2) / 6)
local room, memory = tonumber(ARGV[A + 1]), tonumber(ARGV[A + 2])
local again, result = call('GET', REPLY), { int(now) }

-- answer adds an item to the result. An empty record of a job that is there is read.
local function answer(code, run, rec)
  room = room - #rec
  if room < 0 and code == 'ok' then code, rec = 'bare', without_body(rec) end
  result[#result + 1] = { code, run, rec, named(rec) }
end

-- A call's memory is its codes, runs, and records as far as they fit, each with its length before it. What does not fit is
-- answered again as it is then.
if again then
  local from = 1
  local function part()
    local colon = string.find(again, ':', from, true)
    local stop = colon + tonumber(string.sub(again, from, colon - 1))
    from = stop + 1
    return string.sub(again, colon + 1, stop)
  end
  for i = 1, entries do
    local code, run, rec = part(), part(), part()
    if code == 'ok' and rec == '' then rec = call('HGET', JOBS, ARGV[at + (i - 1) * 6 + 2]) or '' end
    if code == 'ok' and rec == '' then code = 'none' end
    answer(code, run, rec)
  end
  return result
end

-- retagged is a record with the fields url and expires ('' as it is) in place of those that it has.
local function retagged(rec, url, expires)
  if url == '' and expires == '' then return rec end
  local i = 19 + body_size(rec)
  local kept, replaced = { string.sub(rec, 1, i - 1), url, expires }, {}
  for _, field in ipairs({ url, expires }) do
    if field ~= '' then replaced[string.byte(field)] = true end
  end
  while i <= #rec do
    local tag, size, shift, from = string.byte(rec, i), 0, 1, i + 1
    repeat
      local b = string.byte(rec, from)
      if not b then return rec end
      size, shift, from = size + b % 128 * shift, shift * 128, from + 1
    until b < 128
    if not replaced[tag] then kept[#kept + 1] = string.sub(rec, i, from + size - 1) end
    i = from + size
  end
  return table.concat(kept)
end

-- First everything is decided, so that nothing is done when the first write is refused.
read_agenda_head()
local stood, revived, records, lines, remembered, ttls = {}, {}, {}, {}, {}, {}
local function decide(a)
  local q, member, wait, url, from = queues[tonumber(ARGV[a])], ARGV[a + 1], ARGV[a + 2], ARGV[a + 3], ARGV[a + 4]
  local wish = ARGV[a + 5]
  local rec = call('HGET', JOBS, member)
  if not rec then return 'none', '', '' end
  if #rec < 18 or string.byte(rec, 1) ~= FORM then return 'form', '', '' end
  if not q or queue_number(rec) ~= q.n then return nil end
  local line = call('HGET', RUNS, member)
  local r = stood[member] or line and parse(line) or fresh(rec)
  if r.state == '-' or (from ~= '' and from ~= r.state) then return 'state', pack(r), '' end
  local due = math.max(instant(wait, later), now)
  local expires, age = lifetime(rec)
  if wish ~= '' then expires = instant(wish, later) end
  if expires and expires < due then return 'expired', '', '' end
  local ended, size, state, new = q.topic[r.state], r.size, r.state, retagged(rec, url, expiry(wish, later))
  local _, _, ver, round = split_schedule(r.schedule)
  r.tries, r.lost, r.state, r.fin, r.reason, r.size = '0', '0', '-', '0', '-', #new
  r.schedule = join_schedule(due, due, plus(ver), plus(round))
  note(r, member, '{"n":' .. r.made .. ',"k":"revived","ms":' .. NOW .. '}\n')
  stood[member] = r
  local ttl = ends(expires, due, age)
  if ttl then
    ttls[#ttls + 1] = int(ttl)
    ttls[#ttls + 1] = member
  end
  if new ~= rec then
    records[#records + 1] = member
    records[#records + 1] = new
  end
  line = pack(r)
  lines[#lines + 1] = member
  lines[#lines + 1] = line
  revived[#revived + 1] = { q = q, member = member, due = due, r = r, ended = ended, state = state, size = size }
  return 'ok', line, new
end
for i = 1, entries do
  local code, run, rec = decide(at + (i - 1) * 6 + 1)
  if not code then return 'again' end
  local kept = code == 'ok' and #rec > memory and '' or rec
  memory = memory - #kept
  for _, part in ipairs({ code, run, kept }) do remembered[#remembered + 1] = #part .. ':' .. part end
  answer(code, run, rec)
end
many('HSET', JOBS, records)
many('HSET', RUNS, lines)
setTTL(ttls)
for _, item in ipairs(revived) do
  local q, r, t = item.q, item.r, item.q.topic
  call('ZREM', item.ended, item.member)
  bump(t, item.state, -1)
  bump(t, item.state .. 'b', -item.size)
  if flagged(r, 'p') then
    local known = call('HGET', IDS, item.member)
    if known then call('HSET', IDS, item.member, string.sub(known, 1, 1 + string.byte(known, 1))) end
    call('ZREM', FORGET, item.member)
  end
  place(q, item.member, item.due)
  q.touched = true
end
for _, q in ipairs(queues) do
  if q.touched then update_agenda(q) end
end
close()
call('SET', REPLY, table.concat(remembered), 'EX', REPLY_TTL)
return result
