-- Removes what retention no longer keeps, of the topics given, and remembered ids whose window has passed.
-- KEYS    those of keys.lua; no queues
-- ARGV    most
-- result  removed jobs, forgotten ids, 1 when the bound was reached
local again = call('GET', REPLY)
if again then
  local jobs, ids, more = string.match(again, '^(%d+) (%d+) (%d)$')
  return { jobs, ids, more }
end
allow()
local most = tonumber(ARGV[A + 1])
local removed = 0
for _, t in ipairs(topics) do
  for _, kind in ipairs({ 'd', 'x' }) do
    if removed < most then removed = removed + trim_ended(t, kind, most - removed) end
  end
end
local old = call('ZRANGEBYSCORE', FORGET, '-inf', int(now), 'LIMIT', 0, most)
local forgotten = 0
for _, member in ipairs(old) do
  if call('HEXISTS', JOBS, member) == 0 then
    call('HDEL', IDS, member)
    forgotten = forgotten + 1
  end
  call('ZREM', FORGET, member)
end
close()
local more = (removed >= most or #old >= most) and '1' or '0'
call('SET', REPLY, removed .. ' ' .. forgotten .. ' ' .. more, 'EX', REPLY_TTL)
return { tostring(removed), tostring(forgotten), more }
