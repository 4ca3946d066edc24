-- Ends attempts.
-- KEYS    those of lib
-- ARGV    positions of the queues that the caller claims from next, as ',1,3,'; then for each item: position of its
--         queue (0 unknown: its lease is lost), member, lease, verdict (d, a, x, r), wait in ms, reason, counts (a attempt, r released, - nothing),
--         line for the record ('' none), number of births, then for each birth: member, entry
-- result  a character for each item: 1 settled, 0 the lease is lost
local again = call('GET', TOK)
if again then return again end
allow()
watch()

local next, at, items, members = ARGV[A + 1], A + 2, {}, {}
while at <= #ARGV do
  local births = tonumber(ARGV[at + 8])
  items[#items + 1] = { q = queues[tonumber(ARGV[at])], member = ARGV[at + 1], lease = ARGV[at + 2],
    verdict = ARGV[at + 3], wait = ARGV[at + 4], reason = ARGV[at + 5], counts = ARGV[at + 6], line = ARGV[at + 7],
    births = at + 9, after = at + 9 + births * 2 }
  members[#members + 1] = ARGV[at + 1]
  at = at + 9 + births * 2
end
local runs = call('HMGET', RUNS, unpack(members))
local settled, answers, lines = {}, {}, {}

local function apply(item, r)
  local q = item.q
  if item.line ~= '' then note(r, item.member, item.line) end
  if item.counts == 'a' then
    r.made, r.lost = r.made + 1, 0
    if item.verdict ~= 'd' then r.tries = r.tries + 1 end
  end
  q.left = q.left or {}
  q.left[#q.left + 1] = item.member
  local marked = flagged(r, 'm')
  r.lease, r.fin = '-', 0
  if item.verdict == 'd' then
    return finish(q, item.member, r, 'd', '-')
  elseif marked then
    return finish(q, item.member, r, 'c', 'cancelled')
  elseif item.verdict == 'x' then
    return finish(q, item.member, r, 'x', item.reason)
  end
  r.due = instant(item.wait, later)
  q.dues[#q.dues + 1] = int(r.due)
  q.dues[#q.dues + 1] = item.member
  return true
end

for i, item in ipairs(items) do
  local r = not settled[item.member] and runs[i] and parse(runs[i])
  if r and item.q and r.lease == item.lease .. '@' .. item.q.n then
    settled[item.member] = true
    if apply(item, r) then
      lines[#lines + 1] = item.member
      lines[#lines + 1] = pack(r)
    end
    for b = item.births, item.after - 1, 2 do
      if call('HSETNX', OUTBOX, ARGV[b], ARGV[b + 1]) == 1 then
        call('ZADD', OUTQ, NOW, ARGV[b])
        early = true
      end
    end
    answers[i] = '1'
  else
    answers[i] = '0'
  end
end
many('HSET', RUNS, lines)
for _, t in ipairs(topics) do retain(t) end
for i, q in ipairs(queues) do
  if q.left then
    local full = call('ZCARD', q.held) >= terms(q.topic).limit
    arrange(q)
    many('ZREM', q.held, q.left)
    bump(q.topic, 'held', -#q.left)
    if full and not string.find(next, ',' .. i .. ',', 1, true) then q.ring = true end
    look(q)
  end
end
close()
local answer = table.concat(answers)
call('SET', TOK, answer, 'EX', MEMORY)
return answer
