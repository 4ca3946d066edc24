-- Registers jobs.
-- KEYS    those of keys.lua
-- ARGV    for each entry: position of its queue, member, due ('@ms' or a wait), expiry ('', '@ms' or a wait), fingerprint,
--         head of the record, rest of the record, max_age of its topic in ms (0 none)
-- result  now, later, then for each entry: c (created), or {e or x (existing, conflict), now, record, run, known,
--         name of its queue}
local entries = floor((#ARGV - A) / 8)
local function arg(i, j) return ARGV[A + (i - 1) * 8 + j] end

local outcomes = call('GET', REPLY)
local first, second = now, later
local members, prints = {}, {}
for i = 1, entries do members[i] = arg(i, 2) end
if outcomes then
  local a, b, rest = string.match(outcomes, '^(%d+) (%d+) (.*)$')
  first, second, outcomes = tonumber(a), tonumber(b), rest
end

local function known(member, outcome)
  local rec = call('HGET', JOBS, member)
  return { outcome, int(now), rec or '', call('HGET', RUNS, member) or '', call('HGET', IDS, member) or '', queue_name(rec) }
end

if outcomes then
  local result = { int(first), int(second) }
  for i = 1, entries do
    local o = string.sub(outcomes, i, i)
    result[2 + i] = o == 'c' and 'c' or known(members[i], o)
  end
  return result
end

read_agenda_head()
local result, codes, records, ids, remembered, inserted, ttls = { int(now), int(later) }, {}, {}, {}, {}, {}, {}
local present = call('HMGET', JOBS, unpack(members))
for i = 1, entries do
  local q, member, fingerprint = queues[tonumber(arg(i, 1))], members[i], arg(i, 5)
  local there = present[i] or inserted[member]
  local before = inserted[member] and { fingerprint = inserted[member].fingerprint } or nil
  local stored
  if not inserted[member] and (there or fingerprint ~= '') then stored = call('HGET', IDS, member) end
  if stored then
    local width = string.byte(stored, 1)
    local state, forget = string.match(string.sub(stored, 2 + width), '^(%S) %d+ %S+ (%d+)')
    if there or (forget and tonumber(forget) > now) then
      before = { fingerprint = string.sub(stored, 2, 1 + width), state = state }
    end
  elseif there and not before then
    before = { fingerprint = '' }
  end
  if before and present[i] and not before.state then
    local line = call('HGET', RUNS, member)
    before.state = line and parse_run(line).state
  end
  if before then
    codes[i] = (before.fingerprint == fingerprint and before.state ~= 'c') and 'e' or 'x'
    result[2 + i] = codes[i]
  else
    local when, base = arg(i, 3), now
    if when ~= '0' and string.sub(when, 1, 1) ~= '@' then base = later end
    local due = math.max(parse_time(when, base), now)
    local created = encode_field(TAG_CREATED, due - base)
    if order.on(q) then created = created .. encode_field(TAG_ORDER, order.add_number(member, base, due)) end
    records[#records + 1] = member
    records[#records + 1] = arg(i, 6) .. encode_number(due, 6) .. arg(i, 7) .. created .. encode_expiry(arg(i, 4), base)
    if fingerprint ~= '' then
      ids[#ids + 1] = member
      ids[#ids + 1] = string.char(#fingerprint) .. fingerprint
      remembered[#remembered + 1] = member
    end
    local ttl = ttl_end(arg(i, 4) ~= '' and parse_time(arg(i, 4), base) or nil, due, tonumber(arg(i, 8)))
    if ttl then
      ttls[#ttls + 1] = int(ttl)
      ttls[#ttls + 1] = member
    end
    inserted[member] = { fingerprint = fingerprint }
    place_job(q, member, due)
    add_counter(q.topic, 'reg', 1)
    add_counter(q.topic, 'b', #records[#records])
    q.touched = true
    codes[i], result[2 + i] = 'c', 'c'
  end
end
-- The records are the first write, so that the call is refused whole while memory is full.
call_in_chunks('HSET', JOBS, records)
call_in_chunks('HSET', IDS, ids)
call_in_chunks('ZREM', FORGET, remembered)
set_ttls(ttls)
order.save_last()
for _, q in ipairs(queues) do
  if q.touched then update_agenda(q) end
end
close()
call('SET', REPLY, int(now) .. ' ' .. int(later) .. ' ' .. table.concat(codes), 'EX', REPLY_TTL)
for i = 1, entries do
  if codes[i] ~= 'c' then result[2 + i] = known(members[i], codes[i]) end
end
return result
