-- Walks through a topic's list of jobs that ended so, and takes out what does not belong there.
-- KEYS    those of keys.lua; no queues, one topic
-- ARGV    state of the list (d, x, c), cursor
-- result  next cursor ('0' at the end), {kind, how many were repaired, …}, some of their members
allow()
local state, set = ARGV[A + 1], topics[1][ARGV[A + 1]]

-- elsewhere reports whether a queue is one of another topic.
local names = {}
local function elsewhere(n)
  if not n then return false end
  if names[n] == nil then names[n] = call('HGET', NAMES, n) end
  return names[n] and match(names[n], '^[^/]*/[^/]*') ~= topics[1].name
end

local found, members = call('ZSCAN', set, ARGV[A + 2], 'COUNT', 256), {}
for i = 1, #found[2], 2 do members[#members + 1] = found[2][i] end
for first = 1, #members, 1000 do
  local last = math.min(first + 999, #members)
  local runs = call('HMGET', RUNS, unpack(members, first, last))
  for i = first, last do
    local lease, is = lease_and_state(runs[i - first + 1])
    local n = number(members[i])
    local there = n ~= nil
    if not there or lease and is ~= state or elsewhere(n) then
      call('ZREM', set, members[i])
      repaired(there and 'misplaced' or 'no_job', members[i])
    end
  end
end
return { found[1], report(), examples }
