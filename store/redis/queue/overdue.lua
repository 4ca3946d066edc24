-- Reads the waiting jobs whose time to live is over. Changes nothing.
-- KEYS    those of keys.lua
-- ARGV    token, most jobs
-- result  now, then, when the call is a repeat: 1, {for each job that is still leased under the token: member, record, run, ms
--         left of its lease, name of its queue}; else: 0, {member, number of its queue ('' there is no such job)}
local token, most = ARGV[A + 1], tonumber(ARGV[A + 2])
local again, found = call('GET', REPLY), {}
if again then
  local deadline = tonumber(match(again, '^%d+'))
  for member in string.gmatch(again, '\n([^\n]+)') do
    local rec, line = call('HGET', JOBS, member), call('HGET', RUNS, member)
    if rec and line and sub(parse_run(line).lease, 1, #token + 1) == token .. '@' then
      for _, part in ipairs({ member, rec, line, int(deadline - now), queue_name(rec) }) do found[#found + 1] = part end
    end
  end
  return { NOW, 1, found }
end
-- Held jobs are left out: their settlement checks their time to live.
local from, room = 0, 8388608
while #found < 2 * most and from < 8192 and room > 0 do
  local page = call('ZRANGEBYSCORE', TTL, '-inf', '(' .. NOW, 'LIMIT', from, 256)
  if #page == 0 then break end
  local runs = call('HMGET', RUNS, unpack(page))
  for i, member in ipairs(page) do
    local r = runs[i] and parse_run(runs[i])
    if #found < 2 * most and room > 0 and not (r and r.lease ~= '-') then
      local rec = call('HGET', JOBS, member)
      room = room - (rec and #rec or 0)
      if not rec or queue_name(rec) ~= '' then -- else it cannot be claimed
        found[#found + 1] = member
        found[#found + 1] = rec and queue_number(rec) or ''
      end
    end
  end
  from = from + #page
end
return { NOW, 0, found }
