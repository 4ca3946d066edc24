-- Checks that jobs are where they belong, and moves those that are not.
-- KEYS    those of keys.lua
-- ARGV    for each job: position of its queue, member
-- result  {kind, how many were repaired, …}, some of their members
allow()
read_agenda_head()
for i = A + 1, #ARGV, 2 do
  local q = queues[tonumber(ARGV[i])]
  q.members = q.members or {}
  q.members[#q.members + 1] = ARGV[i + 1]
end

-- suspects checks some jobs of a queue. One that is in due may be in ready as well: queues.lua finds that.
local function suspects(q, members)
  local list, ended = {}, {}
  local runs = call('HMGET', RUNS, unpack(members))
  local dues, claims = call('ZMSCORE', q.due, unpack(members)), call('ZMSCORE', q.claimed, unpack(members))
  for i, member in ipairs(members) do
    local lease, state = lease_and_state(runs[i])
    local suspect
    if not lease then
      suspect = false -- it cannot be read
    elseif state ~= '-' then
      suspect = dues[i] or claims[i]
      ended[state] = ended[state] or {}
      table.insert(ended[state], member)
    elseif lease ~= '-' then
      suspect = dues[i] or not claims[i]
    else
      suspect = claims[i] or not dues[i] and not call('LPOS', q.ready, member)
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
return { report(), examples }
