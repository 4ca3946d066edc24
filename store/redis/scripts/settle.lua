-- Ends attempts. Before it stands back.lua.
-- KEYS    those of lib
-- ARGV    positions of the queues that the caller claims from next, as ',1,3,'; then for each item: position of its
--         queue (0 unknown: its lease is lost), member, lease, verdict (d, a, x, r), wait in ms, reason, what it shows,
--         line for the record ('' none), number of births, then for each birth: member, entry
--         What it shows is 'a' and the status of an attempt that counts, else '-'; and of a whole lane, after a space, the
--         ms of a hold and o or c when its breaker opens or closes; then, after another, when the start of its rate is
--         given back, the slack of the claim in ms
-- result  a character for each item: 1 settled, 0 the lease is lost
local again = call('GET', TOK)
if again then return again end
allow()
watch()

local next, at, items, members = ARGV[A + 1], A + 2, {}, {}
while at <= #ARGV do
  local births = tonumber(ARGV[at + 8])
  items[#items + 1] = { q = queues[tonumber(ARGV[at])], member = ARGV[at + 1], lease = ARGV[at + 2],
    verdict = ARGV[at + 3], wait = ARGV[at + 4], reason = ARGV[at + 5], shows = ARGV[at + 6], line = ARGV[at + 7],
    births = at + 9, after = at + 9 + births * 2 }
  members[#members + 1] = ARGV[at + 1]
  at = at + 9 + births * 2
end
local runs = call('HMGET', RUNS, unpack(members))
local settled, answers, lines = {}, {}, {}
local full = {} -- queues that gave nothing before, or may give otherwise now

-- unstart gives back the start that a job's claim took of its lane's rate, unless that counts no more.
local function unstart(q, r, slack)
  local g, k, at = q.gate, limits(q), tonumber(r.fin)
  if not (g and k.starts and flagged(r, 'r')) or at + slack + k.per <= now then return end
  back(g.starts, at, slack, 1, k.starts)
  g.starts, g.changed = counted(g.starts, k.per, now), true
end

-- turn makes a change to a whole lane, of which a held job shows it.
local function turn(q, change, r)
  local hold, breaker, slack = string.match(change, '^(%d+)(%a?) ?(%d*)')
  if slack ~= '' then unstart(q, r, tonumber(slack)) end
  hold = tonumber(hold)
  if hold == 0 and (breaker == '' or breaker == 'c' and not q.gate) then return end
  local g = gate(q)
  g.changed, full[q] = true, true
  if hold > 0 then g.hold = math.max(g.hold, later + hold) end
  if breaker == 'o' then
    g.open, g.hold = true, math.max(g.hold, now) -- what is remembered of it counts from its hold on
  elseif breaker == 'c' then
    g.open = false
  end
end

local function apply(item, r)
  local q = item.q
  if item.line ~= '' then note(r, item.member, item.line) end
  if string.byte(item.shows) == 97 then
    local status, change = string.match(item.shows, '^a(%d+) ?(.*)$')
    r.made, r.lost = r.made + 1, 0
    if item.verdict ~= 'd' then r.tries = r.tries + 1 end
    if r.rest ~= '' then
      r.rest = ' ' .. status .. (string.match(r.rest, '^ %d+(.*)$') or r.rest)
    elseif status ~= '0' then
      r.rest = ' ' .. status
    end
    if change ~= '' then turn(q, change, r) end
  elseif #item.shows > 1 then
    turn(q, string.sub(item.shows, 3), r)
  end
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
    local q, other = item.q, item.verdict ~= 'd' and flagged(r, 'm')
    settled[item.member] = true
    if not q.left then
      q.left = {}
      if free(q, call('ZCARD', q.held)) <= 0 then full[q] = true end
    end
    if apply(item, r) then
      lines[#lines + 1] = item.member
      lines[#lines + 1] = pack(r)
    end
    -- A job that a cancel mark ended otherwise than the verdict says gives birth to nothing.
    for b = item.births, other and 0 or item.after - 1, 2 do bear(ARGV[b], ARGV[b + 1]) end
    answers[i] = '1'
  else
    answers[i] = '0'
  end
end
many('HSET', RUNS, lines)
for _, t in ipairs(topics) do retain(t) end
for i, q in ipairs(queues) do
  if q.left then
    arrange(q)
    many('ZREM', q.held, q.left)
    bump(q.topic, 'held', -#q.left)
    if full[q] and not string.find(next, ',' .. i .. ',', 1, true) then q.ring = true end
    look(q)
  end
end
close()
local answer = table.concat(answers)
call('SET', TOK, answer, 'EX', MEMORY)
return answer
