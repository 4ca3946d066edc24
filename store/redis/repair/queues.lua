-- Walks through queues, removes what does not belong there, and writes their agenda anew.
-- KEYS    those of keys.lua; clock, stale agenda
-- ARGV    where to go on in the first queue: ready, claimed or due, and a cursor; about how many entries to look at; 1 when
--         nothing has happened to the server, so that what it says of queues without jobs is right
-- result  queues that are done, where to go on in the next: ready, claimed or due, and a cursor; faults (mend.lua)
allow()
read_agenda_head()
local kept = ARGV[A + 4] == '1'
local set, cursor, room = ARGV[A + 1], ARGV[A + 2], tonumber(ARGV[A + 3])

-- Each walk answers where to go on, '0' at the end.
local walks = {}

-- Ready is walked from its tail: claims take from its head meanwhile. The cursor counts entries from there.
function walks.ready(q, from)
  from = tonumber(from)
  local members = call('LRANGE', q.ready, -from - 1000, -from - 1)
  if #members == 0 then return '0' end
  local runs, dues = call('HMGET', RUNS, unpack(members)), call('ZMSCORE', q.due, unpack(members))
  local before, seen = call('LLEN', q.ready), {}
  for i, member in ipairs(members) do
    local lease, state = lease_and_state(runs[i])
    if seen[member] or dues[i] or lease and (lease ~= '-' or state ~= '-') or is_foreign(q, member) then mend(q, member) end
    seen[member] = true
  end
  room = room - #members
  if #members < 1000 then return '0' end
  return int(from + #members - (before - call('LLEN', q.ready)))
end

function walks.claimed(q, from)
  local found = call('ZSCAN', q.claimed, from, 'COUNT', 256)
  for i = 1, #found[2], 2 do
    local member = found[2][i]
    local lease, state = lease_and_state(call('HGET', RUNS, member))
    local endless = tonumber(found[2][i + 1]) > LONGEST
    if lease and (state ~= '-' or match(lease, '@(%d+)$') ~= q.n) or endless or is_foreign(q, member) then mend(q, member) end
  end
  room = room - #found[2] / 2
  return found[1]
end

function walks.due(q, from)
  local found, members, scores = call('ZSCAN', q.due, from, 'COUNT', 256), {}, {}
  for i = 1, #found[2], 2 do
    members[#members + 1], scores[#scores + 1] = found[2][i], found[2][i + 1]
  end
  for first = 1, #members, 1000 do
    local last = math.min(first + 999, #members)
    local runs = call('HMGET', RUNS, unpack(members, first, last))
    for i = first, last do
      local line = runs[i - first + 1]
      local lease, state = lease_and_state(line)
      local n, due = number(members[i])
      if line and lease then due = tonumber((split_schedule(parse_run(line).schedule))) end
      local moved = lease and due and tonumber(scores[i]) ~= due
      if lease and (lease ~= '-' or state ~= '-') or moved or n == nil or n and n ~= q.n then mend(q, members[i]) end
    end
  end
  if q.order and order.on(q) and #members > 0 then
    for first = 1, #members, 1000 do
      for _, score in ipairs(call('ZMSCORE', q.ordered, unpack(members, first, math.min(first + 999, #members)))) do
        if not score and q.order == '-' then
          order.restart(q)
          q.touched = true
          repaired('order', '', name_of(q), 'a job is missing in its order')
        end
      end
    end
  end
  room = room - #members
  return found[1]
end

local after, finished = { ready = 'claimed', claimed = 'due' }, 0
for i, q in ipairs(queues) do
  while set and room > 0 do
    room = room - 4
    cursor = walks[set](q, cursor)
    if cursor == '0' then set = after[set] end
  end
  q.idle = kept and not q.touched
  if set then
    if q.touched then relook(q) end
    break
  end
  relook(q)
  finished, set, cursor = i, 'ready', '0'
end
close()
return { finished, set, cursor, faults }
