-- Ends an unfinished job, or marks a claimed one.
-- KEYS    those of keys.lua; one queue
-- ARGV    member, JSON of the event up to its time, the version that the job must have (0 any)
-- result  code, now, record, run; code is ok, none, version, state when it is delivered or dead, or again when it is of
--         another queue
local q, member = queues[1], ARGV[A + 1]
local again = stored_reply(member)
if again then return again end
allow()
local rec = call('HGET', JOBS, member)
if not rec then return refuse(member, 'none') end
if queue_number(rec) ~= q.n then return { 'again' } end
local line = call('HGET', RUNS, member)
local r = line and parse_run(line) or default_run(rec)
local due, first_due, version, generation = split_schedule(r.schedule)
if ARGV[A + 3] ~= '0' and version ~= ARGV[A + 3] then return refuse(member, 'version') end
if r.state == 'd' or r.state == 'x' then return refuse(member, 'state', format_run(r)) end
if r.state == 'c' or has_flag(r, 'm') then
  call('SET', REPLY, r.state == 'c' and line or line .. '\n' .. rec, 'EX', REPLY_TTL)
  return { 'ok', int(now), rec, line }
end
read_agenda_head()
r.schedule, r.size = join_schedule(due, first_due, increment(version), generation), #rec
add_attempt(r, member, ARGV[A + 2] .. NOW .. '}\n')
-- The reply keeps the record of a job that is deleted, or may be before the call is repeated.
local kept, copy = true, ''
if r.lease ~= '-' then
  set_flag(r, 'm')
  copy = '\n' .. rec
else
  order.give_up(q, member)
  if call('ZREM', q.due, member) == 0 then
    add_counter(q.topic, 'ready', -call('LREM', q.ready, 1, member))
  end
  kept = end_job(q, member, r, 'c', 'cancelled')
end
if kept then call('HSET', RUNS, member, format_run(r)) else copy = '\n' .. rec end
apply_retention(q.topic)
update_agenda(q)
close()
call('SET', REPLY, format_run(r) .. copy, 'EX', REPLY_TTL)
return { 'ok', int(now), rec, format_run(r) }
