-- Claims waiting jobs whose time to live is over.
-- KEYS    those of keys.lua
-- ARGV    token, most bytes of bodies, lease in ms, then for each job: position of its queue (0 not known), member
-- result  now, {for each job: position of its queue, member, record, run, ms left of its lease}
local token, room, lease = ARGV[A + 1], tonumber(ARGV[A + 2]), tonumber(ARGV[A + 3])
allow()
read_agenda_head()
local jobs, reply, used, ttls, gone = {}, { int(now + lease) }, 0, {}, {}

-- take claims a job.
local function take(q, member, rec, r)
  capacity(q) -- closes a breaker that is past its retention: else the claimed job would open it again
  if call('ZREM', q.due, member) == 0 then add_counter(q.topic, 'ready', -call('LREM', q.ready, 1, member)) end
  r.lease, r.size, r.finished = token .. '@' .. q.n, #rec, NOW
  clear_flag(r, 'r')
  clear_flag(r, 'o')
  local line = format_run(r)
  call('HDEL', OWNERS, q.n) -- the caller may be another process, see claim.lua
  call('ZADD', q.claimed, int(now + lease), member)
  call('HSET', RUNS, member, line)
  add_counter(q.topic, 'claimed', 1)
  q.claimed_count, q.touched = nil, true
  for _, part in ipairs({ q.at, member, rec, line, int(lease) }) do jobs[#jobs + 1] = part end
  reply[#reply + 1] = member
  -- A job beyond its max_age is claimed here once, one beyond its expiry until it has ended.
  local expires = read_lifetime(rec)
  if not expires then
    gone[#gone + 1] = member
  elseif expires >= now then
    ttls[#ttls + 1] = int(expires)
    ttls[#ttls + 1] = member
  end
end

for i = A + 4, #ARGV, 2 do
  local q, member = queues[tonumber(ARGV[i])], ARGV[i + 1]
  local rec, line, ttl = call('HGET', JOBS, member), call('HGET', RUNS, member), call('ZSCORE', TTL, member)
  local r = line and parse_run(line) or rec and default_run(rec)
  if not rec or r.state ~= '-' then
    gone[#gone + 1] = member
  elseif q and r.lease == '-' and ttl and tonumber(ttl) < now and queue_number(rec) == q.n then
    local body = body_size(rec)
    if #jobs > 0 and used + body > room then break end
    used, q.at = used + body, tonumber(ARGV[i])
    take(q, member, rec, r)
  end
end
call_in_chunks('ZREM', TTL, gone)
set_ttls(ttls)
for _, q in ipairs(queues) do
  if q.touched then update_agenda(q) end
end
close()
call('SET', REPLY, table.concat(reply, '\n'), 'EX', REPLY_TTL)
return { NOW, jobs }
