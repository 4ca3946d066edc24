-- Removes dead jobs for good.
-- KEYS    those of keys.lua
-- ARGV    for each item: position of its queue (0 there is no such job), member
-- result  again when a job is of another queue, else a character for each item: 1 removed, 0 there is no such job, f its
--         record cannot be read here, else its state: d, c, r running, y ready, w scheduled
local answer = call('GET', REPLY)
if answer then return answer end
local entries, answers, gone = floor((#ARGV - A) / 2), {}, {}
for i = 1, entries do
  local q, member = queues[tonumber(ARGV[A + i * 2 - 1])], ARGV[A + i * 2]
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
    answers[i] = r.state
    if r.state == 'x' then
      answers[i], gone[member] = '1', { t = q.topic, r = r }
    elseif r.state == '-' then
      answers[i] = r.lease ~= '-' and 'r' or tonumber((split_schedule(r.schedule))) <= now and 'y' or 'w'
    end
  end
end
allow()
for member, item in pairs(gone) do
  delete_jobs({ member }, { item.r })
  call('ZREM', item.t.x, member)
  add_counter(item.t, 'xb', -item.r.size)
end
close()
answer = table.concat(answers)
call('SET', REPLY, answer, 'EX', REPLY_TTL)
return answer
