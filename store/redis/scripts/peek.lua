-- Reads jobs by name without their bodies. Changes nothing.
-- KEYS    1 jobs  2 runs
-- ARGV    members
-- result  now, records, runs
local records, runs = {}, {}
if #ARGV > 0 then
  records, runs = redis.call('HMGET', KEYS[1], unpack(ARGV)), redis.call('HMGET', KEYS[2], unpack(ARGV))
end
for i = 1, #ARGV do
  local rec = records[i]
  if rec then
    local size = string.byte(rec, 10) * 65536 + string.byte(rec, 11) * 256 + string.byte(rec, 12)
    records[i] = string.sub(rec, 1, 18) .. string.sub(rec, 19 + size)
  end
  records[i], runs[i] = records[i] or '', runs[i] or ''
end
local clock = redis.call('TIME')
return { string.format('%.0f', tonumber(clock[1]) * 1000 + math.floor(tonumber(clock[2]) / 1000)), records, runs }
