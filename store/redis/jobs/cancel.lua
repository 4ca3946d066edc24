-- Ends an unfinished job, or marks a held one.
-- KEYS    those of keys.lua; one queue
-- ARGV    member
-- result  code, now, record, run; code is ok, none, state when it is delivered or dead, or again when it is of another
--         queue
local q, member = queues[1], ARGV[A + 1]
local again = replayed(member)
if again then return again end
allow()
local rec = call('HGET', JOBS, member)
if not rec then return refuse(member, 'none') end
if queue_number(rec) ~= q.n then return { 'again' } end
local line = call('HGET', RUNS, member)
local r = line and parse(line) or fresh(rec)
if r.state == 'd' or r.state == 'x' then return refuse(member, 'state', pack(r)) end
if r.state == 'c' or flagged(r, 'm') then
  call('SET', REPLY, r.state == 'c' and line or line .. '\n' .. rec, 'EX', REPLY_TTL)
  return { 'ok', int(now), rec, line }
end
read_agenda_head()
local due, first_due, version, generation = split_schedule(r.schedule)
r.schedule, r.size = join_schedule(due, first_due, plus(version), generation), #rec
note(r, member, '{"n":' .. r.attempts .. ',"k":"cancelled","ms":' .. NOW .. '}\n')
-- The reply keeps the record of a job that is deleted, or may be before the call is repeated.
local kept, copy = true, ''
if r.lease ~= '-' then
  flag(r, 'm')
  copy = '\n' .. rec
else
  if call('ZREM', q.due, member) == 0 then
    bump(q.topic, 'ready', -call('LREM', q.ready, 1, member))
  end
  kept = finish(q, member, r, 'c', 'cancelled')
end
if kept then call('HSET', RUNS, member, pack(r)) else copy = '\n' .. rec end
retain(q.topic)
update_agenda(q)
close()
call('SET', REPLY, pack(r) .. copy, 'EX', REPLY_TTL)
return { 'ok', int(now), rec, pack(r) }
