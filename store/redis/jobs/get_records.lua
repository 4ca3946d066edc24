-- Reads jobs with their histories. Changes nothing.
-- KEYS    jobs, runs, attempts, ids, names
-- ARGV    most bytes of records and histories, members
-- result  now, then for the first members, as many as have the bytes, but one at least: {record ('' none), run, history, entry of
--         the id, name of the queue}
local room, result = tonumber(ARGV[1]), { int(now) }
for i = 2, #ARGV do
  local member = ARGV[i]
  room = room - call('HSTRLEN', KEYS[1], member) - call('HSTRLEN', KEYS[3], member)
  if room < 0 and i > 2 then break end
  local rec = call('HGET', KEYS[1], member)
  local name = rec and #rec >= 18 and call('HGET', KEYS[5], queue_number(rec))
  result[#result + 1] = { rec or '', call('HGET', KEYS[2], member) or '', call('HGET', KEYS[3], member) or '',
    call('HGET', KEYS[4], member) or '', name or '' }
end
return result
