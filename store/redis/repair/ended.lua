-- Walks through topics' lists of ended jobs, and takes out what does not belong there.
-- KEYS    those of keys.lua; no queues; clock, stale agenda
-- ARGV    where to go on in the first topic: the state of a list (d, x, c), and a cursor; about how many entries to look at
-- result  topics that are done, where to go on in the next: a state, and a cursor; faults (mend.lua)
allow()
local state, cursor, room = ARGV[A + 1], ARGV[A + 2], tonumber(ARGV[A + 3])

-- elsewhere reports whether a queue is one of another topic.
local names = {}
local function elsewhere(t, n)
  if not n then return false end
  if names[n] == nil then names[n] = call('HGET', NAMES, n) end
  return names[n] and match(names[n], '^[^/]*/[^/]*') ~= t.name
end

-- walk checks the next members of a list, and returns the cursor behind them, '0' at the end.
local function walk(t, from)
  local found, members = call('ZSCAN', t[state], from, 'COUNT', 256), {}
  for i = 1, #found[2], 2 do members[#members + 1] = found[2][i] end
  for first = 1, #members, 1000 do
    local last = math.min(first + 999, #members)
    local runs = call('HMGET', RUNS, unpack(members, first, last))
    for i = first, last do
      local lease, is = lease_and_state(runs[i - first + 1])
      local n = number(members[i])
      local there = n ~= nil
      local ran = runs[i - first + 1] -- jobs.lua checks those without a run
      if not there or ran and lease and is ~= state or elsewhere(t, n) then
        call('ZREM', t[state], members[i])
        repaired(there and 'misplaced' or 'no_job', members[i], t.name, 'in ' .. LISTS[state] ..
          (there and ', but it has not ended so, or is of another topic' or ', but there is no such job'))
      end
    end
  end
  room = room - #members
  return found[1]
end

local after, finished = { d = 'x', x = 'c' }, 0
for i, t in ipairs(topics) do
  while state and room > 0 do
    room = room - 4
    cursor = walk(t, cursor)
    if cursor == '0' then state = after[state] end
  end
  if state then break end
  finished, state, cursor = i, 'd', '0'
end
return { finished, state, cursor, faults }
