-- Removes ended jobs for good.
-- KEYS    those of keys.lua
-- ARGV    for each item: position of its queue (0 there is no such job), member, state it must be in (d, x, c, '' any of them) and
--         after it the version it must have ('' any)
-- result  again when a job is of another queue, else a character for each item: 1 removed, 0 there is no such job, f its
--         record cannot be read here, v it has another version, else its state: d, x, c, r running, y ready, w scheduled
local answer = call('GET', REPLY)
if answer then return answer end
local entries, answers, gone = floor((#ARGV - A) / 3), {}, {}
for i = 1, entries do
  local q, member = queues[tonumber(ARGV[A + i * 3 - 2])], ARGV[A + i * 3 - 1]
  local rec = not gone[member] and call('HGET', JOBS, member)
  if not rec then
    answers[i] = '0'
  elseif #rec < 18 or not q and queue_name(rec) == '' then
    answers[i] = 'f'
  elseif not q or queue_number(rec) ~= q.n then
    return 'again'
  else
    local line = call('HGET', RUNS, member)
    local r = line and parse_run(line) or default_run(rec)
    local from, required = match(ARGV[A + i * 3], '^(%D?)(%d*)$')
    local due, _, version = split_schedule(r.schedule)
    answers[i] = r.state
    if required ~= '' and required ~= version then
      answers[i] = 'v'
    elseif r.state == '-' then
      answers[i] = r.lease ~= '-' and 'r' or tonumber(due) <= now and 'y' or 'w'
    elseif from == '' or from == r.state then
      answers[i], gone[member] = '1', { t = q.topic, r = r }
    end
  end
end
allow()
for member, item in pairs(gone) do
  delete_jobs({ member }, { item.r })
  call('ZREM', item.t[item.r.state], member)
  add_counter(item.t, item.r.state .. 'b', -item.r.size)
end
close()
answer = table.concat(answers)
call('SET', REPLY, answer, 'EX', REPLY_TTL)
return answer
