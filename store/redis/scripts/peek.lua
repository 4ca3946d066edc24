-- Reads jobs by name without their bodies. Changes nothing.
-- KEYS    1 jobs  2 runs  3 names
-- ARGV    members
-- result  now, records, runs, names of their queues
local call = redis.call
local records, runs, names = {}, {}, {}
if #ARGV > 0 then
  records, runs = call('HMGET', KEYS[1], unpack(ARGV)), call('HMGET', KEYS[2], unpack(ARGV))
end
for i = 1, #ARGV do
  local rec = records[i]
  names[i] = ''
  if rec and #rec >= 18 then
    local a, b, c, d = string.byte(rec, 3, 6)
    names[i] = call('HGET', KEYS[3], string.format('%.0f', ((a * 256 + b) * 256 + c) * 256 + d)) or ''
    local size = string.byte(rec, 10) * 65536 + string.byte(rec, 11) * 256 + string.byte(rec, 12)
    records[i] = string.sub(rec, 1, 18) .. string.sub(rec, 19 + size)
  end
  records[i], runs[i] = records[i] or '', runs[i] or ''
end
local clock = call('TIME')
return { string.format('%.0f', tonumber(clock[1]) * 1000 + math.floor(tonumber(clock[2]) / 1000)), records, runs,
  names }
