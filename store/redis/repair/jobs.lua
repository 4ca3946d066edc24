-- Checks that jobs are where they belong, and moves those that are not.
-- KEYS    those of keys.lua; clock, stale agenda
-- ARGV    for each job: position of its queue, member, 1 if it has an expiry
-- result  how many of the jobs wait, are claimed, are delivered, are dead, are cancelled; faults (mend.lua)
allow()
read_agenda_head()
for i = A + 1, #ARGV, 3 do
  local q = queues[tonumber(ARGV[i])]
  q.members, q.expiring = q.members or {}, q.expiring or {}
  q.members[#q.members + 1] = ARGV[i + 1]
  q.expiring[ARGV[i + 1]] = ARGV[i + 2] == '1'
end
local states = { ['-'] = 0, claimed = 0, d = 0, x = 0, c = 0 }

-- suspects checks some jobs of a queue. One that is in due may be in ready as well: queues.lua finds that.
local function suspects(q, members)
  local list, ended, idle, found = {}, {}, {}, {}
  local runs = call('HMGET', RUNS, unpack(members))
  local dues, claims = call('ZMSCORE', q.due, unpack(members)), call('ZMSCORE', q.claimed, unpack(members))
  for i, member in ipairs(members) do
    local lease, state = lease_and_state(runs[i])
    local suspect
    if not lease then
      suspect = false -- it cannot be read
      if auditing then repaired('unreadable', member, name_of(q), 'its run cannot be read') end
    elseif state ~= '-' then
      suspect = dues[i] or claims[i]
      ended[state] = ended[state] or {}
      table.insert(ended[state], member)
    elseif lease ~= '-' then
      suspect = dues[i] or not claims[i]
    else
      suspect = claims[i] or not dues[i] and not call('LPOS', q.ready, member)
      if not suspect and q.expiring[member] then suspect = not call('ZSCORE', TTL, member) end
      if not suspect and not runs[i] then idle[#idle + 1] = member end
    end
    if lease then
      local kind = state == '-' and lease ~= '-' and 'claimed' or state
      states[kind] = (states[kind] or 0) + 1
    end
    if suspect then list[#list + 1] = member end
  end
  for state, all in pairs(ended) do
    local set = q.topic[state]
    local scores = set and call('ZMSCORE', set, unpack(all)) or {}
    for i, member in ipairs(all) do
      if set and not scores[i] then list[#list + 1] = member end
    end
  end
  for _, state in ipairs(#idle > 0 and { 'd', 'x', 'c' } or {}) do
    for i, score in ipairs(call('ZMSCORE', q.topic[state], unpack(idle))) do
      if score and not found[idle[i]] then
        found[idle[i]] = true
        list[#list + 1] = idle[i]
      end
    end
  end
  return list
end

for _, q in ipairs(queues) do
  local members = q.members or {}
  for from = 1, #members, 500 do
    local some = {}
    for i = from, math.min(from + 499, #members) do some[#some + 1] = members[i] end
    for _, member in ipairs(suspects(q, some)) do mend(q, member) end
  end
  if q.touched then relook(q) end
end
close()
return { { states['-'], states.claimed, states.d, states.x, states.c }, faults }
