-- Ends attempts, or extends their leases.
-- KEYS    those of keys.lua
-- ARGV    positions of the queues that the caller claims from next, as ',1,3,', which need no wake-up and mostly no update_agenda; then
--         for each item: its head, member, line for the record with its end ('' none), its new body if it has one, then for
--         each of its new jobs: member, entry
--         A head is 'queue verdict wait reason jobs effect', a line end, and the lease: position of its queue (0 unknown:
--         its lease is lost), verdict (d, a, x, r; e extends the lease by the wait), wait in ms, reason, number of new jobs (and + with a new body), effect.
--         Most items of a call have the same head, so that it is parsed once.
--         The effect is 'a', the bucket of its lateness and the answer to an attempt that counts (0 none), else '-'; and of a whole
--         lane, after a space, the
--         ms of a cooldown, o or c when its breaker opens or closes, and the cooldown's cause
-- result  a character for each item: 1 settled, 2 extended and a cancellation was requested, 0 the lease is lost; then the lines of
--         change_health
local again = call('GET', REPLY)
if again then return again end
allow()
read_agenda_head()

-- head reads an item's head. A lease of no queue is none.
local heads = {}
local function head(text)
  local h = heads[text]
  if not h then
    local at, verdict, wait, reason, new_jobs, body, effect, lease =
      match(text, '^(%d+) (%S) (%S+) (%S+) (%d+)(%+?) ([^\n]*)\n(.*)$')
    local late, answer, change = match(effect, '^a(%d)(%S+) ?(.*)$')
    local q = queues[tonumber(at)]
    h = { q = q, verdict = verdict, wait = wait, reason = reason, outbox = new_jobs * 2, body = #body, answer = answer,
      late = late,
      change = change or sub(effect, 3), lease = q and lease .. '@' .. q.n }
    heads[text] = h
  end
  return h
end

local claims_next, items, members, froms, count = ARGV[A + 1], {}, {}, {}, 0
local at = A + 2
while at <= #ARGV do
  count = count + 1
  items[count], members[count], froms[count] = head(ARGV[at]), ARGV[at + 1], at + 2
  at = at + 3 + items[count].body + items[count].outbox
end
local runs = call('HMGET', RUNS, unpack(members))
local settled, answers, lines, one = {}, {}, {}, {}
local full = {} -- queues that were at their limits, or whose throttle changed

-- change_throttle applies a cooldown and a breaker's change to a queue.
local function change_throttle(q, change)
  local cooldown, breaker, cause = string.match(change, '^(%d+)([oc]?)(%a?)')
  cooldown = tonumber(cooldown)
  if cooldown == 0 and (breaker == '' or breaker == 'c' and not q.throttle) then return end
  local throttle = ensure_throttle(q)
  throttle.changed, full[q] = true, true
  local before = throttle.cooldown
  if cooldown > 0 then throttle.cooldown = math.max(before, later + cooldown) end
  if breaker == 'o' then
    throttle.open, throttle.cooldown = true, math.max(throttle.cooldown, now) -- its retention counts from the cooldown
  elseif breaker == 'c' then
    throttle.open = false
  end
  if throttle.cooldown > before then set_cooldown_start(throttle, NOW, cooldown > 0 and later + cooldown > before and cause or nil) end
end

-- replace_body writes a job's record with another body.
local function replace_body(q, member, body, r)
  local rec = call('HGET', JOBS, member)
  if not rec then return end
  rec = sub(rec, 1, 9) .. encode_number(#body, 3) .. sub(rec, 13, 18) .. body .. sub(rec, 19 + body_size(rec))
  call('HSET', JOBS, member, rec)
  add_counter(q.topic, 'b', #rec - r.size)
  r.size = #rec
end

local function apply(index, item, member, line, r)
  local q, left = item.q, item.q.left
  local marked = has_flag(r, 'm')
  if marked and item.verdict == 'a' then line = string.gsub(line, ',"v":"%a+"', ',"v":"cancelled"', 1) end
  if line ~= '' then add_attempt(r, member, line) end
  if item.verdict == 'd' then count_history(q.topic, 1) elseif item.answer then count_history(q.topic, 2) end
  if item.verdict == 'x' and not marked then count_history(q.topic, 3) end
  if item.verdict == 'r' and not item.answer then count_history(q.topic, 4) end
  if item.late then count_history(q.topic, 5 + item.late) end
  if item.answer then
    r.attempts, r.lost = increment(r.attempts), '0'
    q.first = q.first or index
    if item.verdict == 'd' then
      q.delivered = (q.delivered or 0) + 1
    else
      r.failed = increment(r.failed)
      q.failed = (q.failed or 0) + 1
      q.failure = (find(item.answer, '^[1-9]') and item.answer .. ' -' or item.answer == '0' and '0 -' or '0 ' .. item.answer) ..
        ' ' .. match(member, '[^/]*$')
    end
    if r.rest ~= '' then
      r.rest = ' ' .. item.answer .. (match(r.rest, '^ %S+(.*)$') or r.rest)
    elseif item.answer ~= '0' then
      r.rest = ' ' .. item.answer
    end
  end
  if item.change ~= '' then change_throttle(q, item.change) end
  left[#left + 1] = member
  r.lease, r.finished = '-', '0'
  if item.verdict == 'd' then
    return end_job(q, member, r, 'd', '-')
  elseif marked then
    return end_job(q, member, r, 'c', 'cancelled')
  elseif item.verdict == 'x' then
    return end_job(q, member, r, 'x', item.reason)
  end
  local due = int(parse_time(item.wait, later))
  r.schedule = reschedule(r.schedule, due)
  add_due(q, due, member)
  return true
end

for i = 1, count do
  local item, member = items[i], members[i]
  local q, r = item.q, not settled[member] and runs[i] and parse_run(runs[i], one)
  if r and q and r.lease == item.lease and item.verdict == 'e' then
    local deadline = parse_time(item.wait, later)
    if deadline > tonumber(call('ZSCORE', q.claimed, member) or 0) then
      call('ZADD', q.claimed, int(deadline), member)
      q.extended = true
    end
    answers[i] = has_flag(r, 'm') and '2' or '1'
  elseif r and q and r.lease == item.lease then
    local other = item.verdict ~= 'd' and has_flag(r, 'm')
    settled[member] = true
    if not q.left then
      q.left = {}
      if capacity(q) <= 0 then full[q] = true end
    end
    -- A job that was cancelled instead of what the verdict says creates no jobs, and a body that names them is dropped.
    if item.body > 0 and not (other and item.outbox > 0) then replace_body(q, member, ARGV[froms[i] + 1], r) end
    if apply(i, item, member, ARGV[froms[i]], r) then
      local n = #lines
      lines[n + 1], lines[n + 2] = member, format_run(r)
    end
    local from = froms[i] + item.body + 1
    for b = from, other and 0 or from + item.outbox - 1, 2 do enqueue(ARGV[b], ARGV[b + 1]) end
    answers[i] = '1'
  else
    answers[i] = '0'
  end
end
call_in_chunks('HSET', RUNS, lines)
for _, t in ipairs(topics) do apply_retention(t) end
for i, q in ipairs(queues) do
  if q.left then
    local claimed_next, same = find(claims_next, ',' .. i .. ',', 1, true), not (full[q] or q.dues or q.throttle)
    write_placed(q)
    call_in_chunks('ZREM', q.claimed, q.left)
    q.claimed_count = nil
    add_counter(q.topic, 'claimed', -#q.left)
    if full[q] and not claimed_next then q.notify = true end
    -- The claim that follows updates the agenda of its queues. If it does not come, the score of a queue whose throttle did not
    -- change is still early enough.
    if not (claimed_next and same) then update_agenda(q) end
  elseif q.extended then
    update_agenda(q)
  end
end
write_history()
close()
local answer = table.concat(answers) .. change_health()
call('SET', REPLY, answer, 'EX', REPLY_TTL)
return answer
