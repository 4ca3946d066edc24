-- Changes a job that nobody holds.
-- KEYS    those of lib; one queue
-- ARGV    member, version that the caller read, version that must be (0 any), due ('' stays, '@ms' or a wait),
--         expiry ('' none, '@ms' or a wait), head of the new record, rest of it, kind for the record
-- result  code, now, record, run, attempts; code is ok, none, state, version, or again when it is not as it was read
local q, member = queues[1], ARGV[A + 1]
local again = call('GET', TOK)
if again then
  local rec = call('HGET', JOBS, member)
  return { rec and 'ok' or 'none', int(now), rec or '', again, call('HGET', TRIES, member) or '' }
end
local rec = call('HGET', JOBS, member)
if not rec or int(be(rec, 3, 6)) ~= q.n then return { 'none' } end
local line = call('HGET', RUNS, member)
local r = line and parse(line) or fresh(rec)
if r.lease ~= '-' or r.state ~= '-' then return { 'state', int(now), rec, line, '' } end
if ARGV[A + 3] ~= '0' and int(r.ver) ~= ARGV[A + 3] then return { 'version' } end
if int(r.ver) ~= ARGV[A + 2] then return { 'again' } end
watch()
local wish = ARGV[A + 4]
local base = (wish ~= '' and wish ~= '0' and string.sub(wish, 1, 1) ~= '@') and later or now
rec = ARGV[A + 6] .. string.sub(rec, 13, 18) .. ARGV[A + 7] .. expiry(ARGV[A + 5], base)
r.ver, r.size = r.ver + 1, #rec
local tries = note(r, member, '{"n":' .. int(r.made) .. ',"k":"' .. ARGV[A + 8] .. '","ms":' .. int(now) .. '}')
if wish ~= '' then
  r.due = math.max(instant(wish, base), now)
  if r.tries == 0 and r.lost == 0 then r.since = r.due end
  if call('ZREM', q.due, member) == 0 then
    bump(q.topic, 'ready', -call('LREM', q.ready, 1, member))
  end
  place(q, member, r.due)
end
call('HSET', JOBS, member, rec)
call('HSET', RUNS, member, pack(r))
look(q)
close()
call('SET', TOK, pack(r), 'EX', MEMORY)
return { 'ok', int(now), rec, pack(r), tries }
