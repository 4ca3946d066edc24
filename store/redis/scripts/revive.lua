-- Sends an ended job on another round.
-- KEYS    those of lib; one queue
-- ARGV    member, version that the caller read, wait in ms, its expiry in ms (0 none), the record without it
-- result  code, now, record, run; code is ok, none, state, or again when it is not as it was read
local q, member = queues[1], ARGV[A + 1]
local t = q.topic
local again = replayed(member)
if again then return again end
local rec = call('HGET', JOBS, member)
if not rec then return refuse(member, 'none') end
if int(be(rec, 3, 6)) ~= q.n then return { 'again' } end
local line = call('HGET', RUNS, member)
local r = line and parse(line) or fresh(rec)
if r.state == '-' then return refuse(member, 'state', pack(r)) end
if int(r.ver) ~= ARGV[A + 2] then return { 'again' } end
watch()
local ended = t[r.state]
bump(t, r.state, -1)
bump(t, r.state .. 'b', -r.size)
local expires = tonumber(ARGV[A + 4])
if expires > 0 and expires <= now then rec = ARGV[A + 5] end
call('HSET', JOBS, member, rec) -- first: refused, and nothing done, while memory is full
call('ZREM', ended, member)
if flagged(r, 'p') then
  local known = call('HGET', IDS, member)
  if known then call('HSET', IDS, member, string.sub(known, 1, 1 + string.byte(known, 1))) end
  call('ZREM', FORGET, member)
end
r.ver, r.round, r.tries, r.lost, r.state, r.fin, r.reason = r.ver + 1, r.round + 1, 0, 0, '-', 0, '-'
r.due, r.size = instant(ARGV[A + 3], later), #rec
r.since = r.due
note(r, member, '{"n":' .. int(r.made) .. ',"k":"revived","ms":' .. int(now) .. '}')
place(q, member, r.due)
call('HSET', RUNS, member, pack(r))
look(q)
close()
call('SET', TOK, pack(r) .. '\n' .. rec, 'EX', MEMORY)
return { 'ok', int(now), rec, pack(r) }
