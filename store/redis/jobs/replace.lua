-- Changes a job without a lease.
-- KEYS    those of keys.lua; one queue
-- ARGV    member, version that the caller read, version that must be (0 any), due ('' stays, '@ms' or a wait),
--         expiry ('' none, '@ms' or a wait), head of the new record, rest of it, kind for the record, 1 when the due time
--         or the expiry moves
-- result  code, now, record, run; code is ok, none, state, version, expired when the expiry would come before the due
--         time, or again when it is not as it was read
local q, member = queues[1], ARGV[A + 1]
local again = replayed(member)
if again then return again end
local rec = call('HGET', JOBS, member)
if not rec then return refuse(member, 'none') end
if queue_number(rec) ~= q.n then return { 'again' } end
local line = call('HGET', RUNS, member)
local r = line and parse(line) or fresh(rec)
local due, first_due, version, generation = split_schedule(r.schedule)
if ARGV[A + 3] ~= '0' and version ~= ARGV[A + 3] then return refuse(member, 'version') end
if r.lease ~= '-' or r.state ~= '-' then return refuse(member, 'state', pack(r)) end
if version ~= ARGV[A + 2] then return { 'again' } end
read_agenda_head()
local when = ARGV[A + 4]
local base = (when ~= '' and when ~= '0' and string.sub(when, 1, 1) ~= '@') and later or now
if when ~= '' then due = math.max(instant(when, base), now) end
local expires = ARGV[A + 5] ~= '' and instant(ARGV[A + 5], base) or nil
if ARGV[A + 9] == '1' and expires and expires < tonumber(due) then return refuse(member, 'expired') end
rec = ARGV[A + 6] .. string.sub(rec, 13, 18) .. ARGV[A + 7] .. expiry(ARGV[A + 5], base)
call('HSET', JOBS, member, rec) -- the first write, so that the call is refused whole while memory is full
r.size = #rec
note(r, member, '{"n":' .. r.attempts .. ',"k":"' .. ARGV[A + 8] .. '","ms":' .. NOW .. '}\n')
if when ~= '' then
  if tonumber(r.failed) == 0 and tonumber(r.lost) == 0 then first_due = due end
  if call('ZREM', q.due, member) == 0 then
    bump(q.topic, 'ready', -call('LREM', q.ready, 1, member))
  end
  place(q, member, due)
end
local _, age = lifetime(rec)
local ttl = ends(expires, tonumber(first_due), age)
if ttl then setTTL({ int(ttl), member }) elseif anyTTL() then call('ZREM', TTL, member) end
r.schedule = join_schedule(due, first_due, plus(version), generation)
call('HSET', RUNS, member, pack(r))
update_agenda(q)
close()
call('SET', REPLY, pack(r) .. '\n' .. rec, 'EX', REPLY_TTL)
return { 'ok', int(now), rec, pack(r) }
