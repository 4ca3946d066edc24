-- Revives ended jobs.
-- KEYS    those of keys.lua
-- ARGV    most bytes of records to return, most to keep in the reply, then for each item: position of its queue (0 there is no such
--         job), member, due as '@ms' or a wait in ms, its new fields ('' they stay), state it must be in (d, x, c, '' any of
--         them) and after it the version it must have ('' any), new expiry ('' it stays, or a wait), JSON of the event up to its
--         time
-- result  again when a job is of another queue, else now, then for each item: {code, run, record, name of its queue}; code
--         is ok, bare when its record is left without its body by the bound, none, version, state, expired when its expiry would
--         come before it is due, or form when the record cannot be read here
local at, entries = A + 2, floor((#ARGV - A - 2) / 7)
local room, keep = tonumber(ARGV[A + 1]), tonumber(ARGV[A + 2])
local again, result = call('GET', REPLY), { int(now) }

-- answer adds an item to the result.
local function answer(code, run, rec)
  room = room - #rec
  if room < 0 and code == 'ok' then code, rec = 'bare', without_body(rec) end
  result[#result + 1] = { code, run, rec, queue_name(rec) }
end

-- A stored reply has codes, runs, and records as far as they fit, each after its length. Records that do not fit are read again.
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
    if code == 'ok' and rec == '' then rec = call('HGET', JOBS, ARGV[at + (i - 1) * 7 + 2]) or '' end
    if code == 'ok' and rec == '' then code = 'none' end
    answer(code, run, rec)
  end
  return result
end

-- field_end returns the position after the field at i; nil when the text ends before.
local function field_end(text, i)
  local size, shift, from = 0, 1, i + 1
  repeat
    local b = string.byte(text, from)
    if not b then return nil end
    size, shift, from = size + b % 128 * shift, shift * 128, from + 1
  until b < 128
  return from + size
end

-- with_fields returns a record with fields in place of those with the same tags. The URL before the first change stays, as the field
-- of the first URL.
local function with_fields(rec, fields)
  local replaced, i = {}, 1
  while i <= #fields do
    local stop = field_end(fields, i)
    replaced[string.byte(fields, i)] = string.sub(fields, i, stop - 1)
    i = stop
  end
  if i == 1 then return rec end
  i = 19 + body_size(rec)
  local kept, first = { string.sub(rec, 1, i - 1), fields }, nil
  while i <= #rec do
    local stop = field_end(rec, i)
    if not stop then return rec end
    local tag, field = string.byte(rec, i), string.sub(rec, i, stop - 1)
    if not replaced[tag] then kept[#kept + 1] = field end
    if tag == TAG_FIRST_URL then first = '' end
    if tag == TAG_URL and replaced[tag] and replaced[tag] ~= field then first = first or string.char(TAG_FIRST_URL) .. string.sub(field, 2) end
    i = stop
  end
  kept[#kept + 1] = first
  return table.concat(kept)
end

-- First everything is decided, so that nothing is done when the first write is refused.
read_agenda_head()
local runs, revived, records, lines, reply, ttls = {}, {}, {}, {}, {}, {}
local function decide(a)
  local q, member, wait, fields = queues[tonumber(ARGV[a])], ARGV[a + 1], ARGV[a + 2], ARGV[a + 3]
  local from, required = match(ARGV[a + 4], '^(%D?)(%d*)$')
  local when = ARGV[a + 5]
  local rec = call('HGET', JOBS, member)
  if not rec then return 'none', '', '' end
  if #rec < 18 or string.byte(rec, 1) ~= FORM or not q and queue_name(rec) == '' then return 'form', '', '' end
  if not q or queue_number(rec) ~= q.n then return nil end
  local line = call('HGET', RUNS, member)
  local r = runs[member] or line and parse_run(line) or default_run(rec)
  local _, _, version, generation = split_schedule(r.schedule)
  if required ~= '' and required ~= version then return 'version', '', '' end
  if r.state == '-' or (from ~= '' and from ~= r.state) then return 'state', format_run(r), '' end
  local due = math.max(parse_time(wait, later), now)
  local expires, age = read_lifetime(rec)
  if when ~= '' then expires = parse_time(when, later) end
  if expires and expires < due then return 'expired', '', '' end
  local ended, size, state, new = q.topic[r.state], r.size, r.state, with_fields(rec, fields .. encode_expiry(when, later))
  r.failed, r.lost, r.state, r.finished, r.reason, r.size = '0', '0', '-', '0', '-', #new
  r.schedule = join_schedule(due, due, increment(version), increment(generation))
  add_attempt(r, member, ARGV[a + 6] .. NOW .. '}\n')
  runs[member] = r
  local ttl = ttl_end(expires, due, age)
  if ttl then
    ttls[#ttls + 1] = int(ttl)
    ttls[#ttls + 1] = member
  end
  if new ~= rec then
    records[#records + 1] = member
    records[#records + 1] = new
  end
  line = format_run(r)
  lines[#lines + 1] = member
  lines[#lines + 1] = line
  revived[#revived + 1] = { q = q, member = member, due = due, r = r, ended = ended, state = state, size = size }
  return 'ok', line, new
end
for i = 1, entries do
  local code, run, rec = decide(at + (i - 1) * 7 + 1)
  if not code then return 'again' end
  local kept = code == 'ok' and #rec > keep and '' or rec
  keep = keep - #kept
  for _, part in ipairs({ code, run, kept }) do reply[#reply + 1] = #part .. ':' .. part end
  answer(code, run, rec)
end
call_in_chunks('HSET', JOBS, records)
call_in_chunks('HSET', RUNS, lines)
set_ttls(ttls)
for _, item in ipairs(revived) do
  local q, r, t = item.q, item.r, item.q.topic
  call('ZREM', item.ended, item.member)
  add_counter(t, item.state, -1)
  add_counter(t, item.state .. 'b', -item.size)
  add_counter(t, 'b', r.size)
  if has_flag(r, 'p') then
    local known = call('HGET', IDS, item.member)
    if known then call('HSET', IDS, item.member, string.sub(known, 1, 1 + string.byte(known, 1))) end
    call('ZREM', FORGET, item.member)
  end
  place_job(q, item.member, item.due)
  q.touched = true
end
for _, q in ipairs(queues) do
  if q.touched then update_agenda(q) end
end
close()
call('SET', REPLY, table.concat(reply), 'EX', REPLY_TTL)
return result
