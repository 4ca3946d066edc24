-- Changes a job without a lease.
-- KEYS    those of keys.lua; one queue
-- ARGV    member, version that the caller read, version that must be (0 any), due ('' stays, '@ms' or a wait),
--         expiry ('' none, '@ms' or a wait), head of the new record, rest of it, JSON of the event up to its time, 1 when
--         the due time or the expiry moves
-- result  code, now, record, run; code is ok, none, state, version, expired when the expiry would come before the due
--         time, or again when it is not as it was read
local q, member = queues[1], ARGV[A + 1]
local again = stored_reply(member)
if again then return again end
local rec = call('HGET', JOBS, member)
if not rec then return refuse(member, 'none') end
if queue_number(rec) ~= q.n then return { 'again' } end
local line = call('HGET', RUNS, member)
local r = line and parse_run(line) or default_run(rec)
local due, first_due, version, generation = split_schedule(r.schedule)
if ARGV[A + 3] ~= '0' and version ~= ARGV[A + 3] then return refuse(member, 'version') end
if r.lease ~= '-' or r.state ~= '-' then return refuse(member, 'state', format_run(r)) end
if version ~= ARGV[A + 2] then return { 'again' } end
read_agenda_head()
local when = ARGV[A + 4]
local base = (when ~= '' and when ~= '0' and string.sub(when, 1, 1) ~= '@') and later or now
if when ~= '' then due = math.max(parse_time(when, base), now) end
local expires = ARGV[A + 5] ~= '' and parse_time(ARGV[A + 5], base) or nil
if ARGV[A + 9] == '1' and expires and expires < tonumber(due) then return refuse(member, 'expired') end
local before = #rec
rec = ARGV[A + 6] .. string.sub(rec, 13, 18) .. ARGV[A + 7] .. encode_expiry(ARGV[A + 5], base)
call('HSET', JOBS, member, rec) -- the first write, so that the call is refused whole while memory is full
r.size = #rec
add_counter(q.topic, 'b', #rec - before)
add_attempt(r, member, ARGV[A + 8] .. NOW .. '}\n')
if when ~= '' then
  if tonumber(r.failed) == 0 and tonumber(r.lost) == 0 then
    first_due = due
    order.give_up(q, member) -- it takes its turn when it is due
  end
  if call('ZREM', q.due, member) == 0 then
    add_counter(q.topic, 'ready', -call('LREM', q.ready, 1, member))
  end
  place_job(q, member, due)
end
local _, age = read_lifetime(rec)
local ttl = ttl_end(expires, tonumber(first_due), age)
if ttl then set_ttls({ int(ttl), member }) elseif has_ttls() then call('ZREM', TTL, member) end
r.schedule = join_schedule(due, first_due, increment(version), generation)
call('HSET', RUNS, member, format_run(r))
update_agenda(q)
close()
call('SET', REPLY, format_run(r) .. '\n' .. rec, 'EX', REPLY_TTL)
return { 'ok', int(now), rec, format_run(r) }
