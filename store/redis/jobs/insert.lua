-- Registers jobs.
-- KEYS    those of keys.lua
-- ARGV    for each entry: position of its queue, member, due ('@ms' or a wait), expiry ('', '@ms' or a wait), print,
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
  return { outcome, int(now), rec or '', call('HGET', RUNS, member) or '', call('HGET', IDS, member) or '', named(rec) }
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
local result, codes, records, ids, printed, stood, ttls = { int(now), int(later) }, {}, {}, {}, {}, {}, {}
local present = call('HMGET', JOBS, unpack(members))
for i = 1, entries do
  local q, member, print = queues[tonumber(arg(i, 1))], members[i], arg(i, 5)
  local there = present[i] or stood[member]
  local before = stood[member] and { print = stood[member].print } or nil
  local memory
  if not stood[member] and (there or print ~= '') then memory = call('HGET', IDS, member) end
  if memory then
    local width = string.byte(memory, 1)
    local state, forget = string.match(string.sub(memory, 2 + width), '^(%S) %d+ %S+ (%d+)')
    if there or (forget and tonumber(forget) > now) then
      before = { print = string.sub(memory, 2, 1 + width), state = state }
    end
  elseif there and not before then
    before = { print = '' }
  end
  if before and present[i] and not before.state then
    local line = call('HGET', RUNS, member)
    before.state = line and parse(line).state
  end
  if before then
    codes[i] = (before.print == print and before.state ~= 'c') and 'e' or 'x'
    result[2 + i] = codes[i]
  else
    local wish, base = arg(i, 3), now
    if wish ~= '0' and string.sub(wish, 1, 1) ~= '@' then base = later end
    local due = math.max(instant(wish, base), now)
    local created = ''
    if due > base then
      local delta, width = due - base, 1
      while delta >= 256 ^ width do width = width + 1 end
      created = string.char(TAG_CREATED, width) .. bytes(delta, width)
    end
    records[#records + 1] = member
    records[#records + 1] = arg(i, 6) .. bytes(due, 6) .. arg(i, 7) .. created .. expiry(arg(i, 4), base)
    if print ~= '' then
      ids[#ids + 1] = member
      ids[#ids + 1] = string.char(#print) .. print
      printed[#printed + 1] = member
    end
    local ttl = ends(arg(i, 4) ~= '' and instant(arg(i, 4), base) or nil, due, tonumber(arg(i, 8)))
    if ttl then
      ttls[#ttls + 1] = int(ttl)
      ttls[#ttls + 1] = member
    end
    stood[member] = { print = print }
    place(q, member, due)
    bump(q.topic, 'reg', 1)
    q.touched = true
    codes[i], result[2 + i] = 'c', 'c'
  end
end
-- The records are the first write: refused, and nothing done, while memory is full.
many('HSET', JOBS, records)
many('HSET', IDS, ids)
many('ZREM', FORGET, printed)
setTTL(ttls)
for _, q in ipairs(queues) do
  if q.touched then update_agenda(q) end
end
close()
call('SET', REPLY, int(now) .. ' ' .. int(later) .. ' ' .. table.concat(codes), 'EX', REPLY_TTL)
for i = 1, entries do
  if codes[i] ~= 'c' then result[2 + i] = known(members[i], codes[i]) end
end
return result
