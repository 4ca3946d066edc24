-- bare reads jobs without their bodies: the records, runs and names of the queues of the first of some members, as many
-- as have 4 MiB, but one at least. Redis does nothing else meanwhile, and Lua takes whole records in.
local function bare(jobs, runs, names, members)
  local n, size = 0, 0
  while n < #members do
    size = size + redis.call('HSTRLEN', jobs, members[n + 1])
    if n > 0 and size > 4194304 then break end
    n = n + 1
  end
  if n == 0 then return {}, {}, {} end
  local records, lines, queues = redis.call('HMGET', jobs, unpack(members, 1, n)), redis.call('HMGET', runs, unpack(members, 1, n)), {}
  for i = 1, n do
    local rec = records[i]
    queues[i] = ''
    if rec and #rec >= 18 then
      local a, b, c, d = string.byte(rec, 3, 6)
      queues[i] = redis.call('HGET', names, string.format('%.0f', ((a * 256 + b) * 256 + c) * 256 + d)) or ''
      local body = string.byte(rec, 10) * 65536 + string.byte(rec, 11) * 256 + string.byte(rec, 12)
      records[i] = string.sub(rec, 1, 18) .. string.sub(rec, 19 + body)
    end
    records[i], lines[i] = records[i] or '', lines[i] or ''
  end
  return records, lines, queues
end
