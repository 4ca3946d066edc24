-- read_without_body reads jobs without their bodies: the records, runs and names of the queues of the first of some members, as many
-- as have 4 MiB, but one at least. Redis does nothing else meanwhile, and Lua takes whole records in.
local function read_without_body(jobs, runs, names, members)
  local n, size = 0, 0
  while n < #members do
    size = size + call('HSTRLEN', jobs, members[n + 1])
    if n > 0 and size > 4194304 then break end
    n = n + 1
  end
  if n == 0 then return {}, {}, {} end
  local records, lines, queues = call('HMGET', jobs, unpack(members, 1, n)), call('HMGET', runs, unpack(members, 1, n)), {}
  local known = {}
  for i = 1, n do
    local rec = records[i]
    queues[i] = ''
    if rec and #rec >= 18 then
      local number = queue_number(rec)
      known[number] = known[number] or call('HGET', names, number) or ''
      queues[i] = known[number]
      records[i] = without_body(rec)
    end
    records[i], lines[i] = records[i] or '', lines[i] or ''
  end
  return records, lines, queues
end
