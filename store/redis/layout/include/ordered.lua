-- Ordered queues: one job at a time, in the order of registration. ordered:<q> has all unfinished jobs of such a queue. Those whose
-- first due time has come have their turn until they end: their score is their number, which grows with the registration. The
-- score of the others is the negative of their first due time. The jobs are in due or claimed as well, and none is in ready.
--
-- The hash ordered has for each of these queues what is in its set: '-' all jobs, else those of a ZSCAN of due up to this cursor. A
-- queue has no entry before its first claim or round of the carrier since it became ordered; q.order is its entry. The field ''
-- has the last number.
local order = { scores = {}, jobs = 1024, bytes = 4194304 } -- scores of new jobs; how many other records the script may read

-- on reports whether a queue is ordered. It drops the set of one that was.
function order.on(q)
  if limits(q).ordered then return true end
  if q.order then
    call('UNLINK', q.ordered)
    call('HDEL', ORDERED, q.n)
    q.order = nil
  end
  return false
end

local function save_order(q, entry)
  q.order = entry
  call('HSET', ORDERED, q.n, entry)
end

-- restart fills the set of a queue again: some jobs may be missing in it.
function order.restart(q) save_order(q, '0') end

-- start makes the set of an ordered queue without jobs, so that it need not be filled later.
function order.start(q)
  if not q.order and not q.dues and call('EXISTS', q.due, q.ready, q.claimed) == 0 then save_order(q, '-') end
end

-- leave removes a job that ends, or whose first due time changes.
function order.leave(q, member)
  if q.order then call('ZREM', q.ordered, member) end
end

-- give_up is leave for a job without a lease. The next one may have its turn at once.
function order.give_up(q, member)
  if not q.order then return end
  if call('ZRANGEBYSCORE', q.ordered, '(0', '+inf', 'LIMIT', 0, 1)[1] == member then q.notify = true end
  order.leave(q, member)
end

-- number returns a job's number: 1024 times the moment of its registration, and what its record adds.
function order.number(rec)
  local fields = read_numbers(rec)
  return (decode_number(rec, 13, 18) - (fields[TAG_CREATED] or 0)) * 1024 + (fields[TAG_ORDER] or 0)
end

-- add_number numbers a new job, which was registered at a moment and is due at another, and returns what its record adds.
function order.add_number(member, created, due)
  order.last = math.max((order.last or tonumber(call('HGET', ORDERED, '') or 0)) + 1, created * 1024)
  order.scores[member] = due <= now and order.last or -due
  return order.last - created * 1024
end
function order.save_last()
  if order.last then call('HSET', ORDERED, '', int(order.last)) end
end

-- read reads a job's record, within what the script may read; false if it does not exist.
function order.read(member)
  if order.jobs <= 0 or order.bytes <= 0 then return nil end
  order.jobs, order.bytes = order.jobs - 1, order.bytes - call('HSTRLEN', JOBS, member)
  return call('HGET', JOBS, member)
end

-- add adds those of a queue's jobs that its set does not have, and returns whether it has all of them.
function order.add(q, members)
  for from = 1, #members, 500 do
    local upto, list, whole = math.min(from + 499, #members), {}, true
    local scores = call('ZMSCORE', q.ordered, unpack(members, from, upto))
    for i = from, upto do
      local member = members[i]
      local score = order.scores[member]
      if not scores[i - from + 1] then
        local rec = not score and order.read(member)
        if rec == nil then
          whole = false
          break
        end
        if rec and #rec >= 18 then
          local line = call('HGET', RUNS, member)
          local first = tonumber(line and match(parse_run(line).schedule, '^%d+ (%d+)') or decode_number(rec, 13, 18))
          score = first <= now and order.number(rec) or -first
        end
        if score then
          list[#list + 1] = int(score)
          list[#list + 1] = member
        end
      end
    end
    call_in_chunks('ZADD', q.ordered, list)
    if not whole then return false end
  end
  return true
end

-- empty_ready puts the ready jobs of a queue that became ordered back into due, and returns whether it has put back all.
local function empty_ready(q)
  local members, dues = call('LRANGE', q.ready, 0, 255), {}
  for _, member in ipairs(members) do
    local line, due = call('HGET', RUNS, member), NOW
    if line then
      due = match(parse_run(line).schedule, '^%d+')
    else
      local rec = order.read(member)
      if rec == nil then break end
      if rec and #rec >= 18 then due = int(decode_number(rec, 13, 18)) end
    end
    dues[#dues + 1] = due
    dues[#dues + 1] = member
  end
  if #dues == 0 then return #members == 0 end
  call('ZADD', q.due, unpack(dues))
  call('LTRIM', q.ready, #dues / 2, -1)
  add_counter(q.topic, 'ready', -#dues / 2)
  return call('EXISTS', q.ready) == 0
end

-- advance adds jobs to the set of an ordered queue, and gives those whose first due time has come their turn. It returns whether
-- all is done. A part of it is done by each call: nothing of the queue is claimed until then.
function order.advance(q)
  if q.order ~= '-' then
    if not q.order then save_order(q, '0') end
    if not empty_ready(q) then return false end
    local found, members = call('ZSCAN', q.due, q.order, 'COUNT', 256), {}
    for i = 1, #found[2], 2 do members[#members + 1] = found[2][i] end
    if not order.add(q, members) then return false end
    save_order(q, found[1] == '0' and '-' or found[1])
    if q.order ~= '-' then return false end
  end
  local members, list = call('ZRANGEBYSCORE', q.ordered, '-' .. NOW, '(0', 'LIMIT', 0, 256), {}
  for _, member in ipairs(members) do
    local rec = order.read(member)
    if rec == nil then break end
    if rec and #rec >= 18 then
      list[#list + 1] = int(order.number(rec))
      list[#list + 1] = member
    else
      call('ZREM', q.ordered, member)
      return false
    end
  end
  call_in_chunks('ZADD', q.ordered, list)
  return #list / 2 == #members and #members < 256
end

-- first returns the job of an ordered queue whose turn it is, and its due time. No job of the queue may be claimed.
function order.first(q)
  for _ = 1, 64 do
    local member = call('ZRANGEBYSCORE', q.ordered, '(0', '+inf', 'LIMIT', 0, 1)[1]
    local due = member and call('ZSCORE', q.due, member)
    if due or not member then return member, tonumber(due) end
    call('ZREM', q.ordered, member) -- a crash of Redis has left it
  end
end

-- next_turn returns when the next job of an ordered queue has its turn.
local function next_turn(q)
  local later = call('ZRANGE', q.ordered, '(0', '-inf', 'BYSCORE', 'REV', 'LIMIT', 0, 1, 'WITHSCORES')[2]
  return later and -tonumber(later) or NEVER
end

-- moment returns when an ordered queue, of which no job is claimed, may have one to claim, and whether it has one now. It sets
-- q.notify if that was placed by the script.
function order.moment(q)
  local later = q.order == '-' and next_turn(q)
  if not later or later <= now then
    if not order.advance(q) then return now, false end
    later = next_turn(q)
  end
  local member, due = order.first(q)
  if not member and later == NEVER then
    order.restart(q) -- its set was lost
    return now, false
  elseif not member then
    return later, false
  end
  if due > now then return math.min(due, later), false end
  if q.placed and q.placed[member] then q.notify = true end
  return due, true
end
