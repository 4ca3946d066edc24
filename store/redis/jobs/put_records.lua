-- Stores jobs as they are.
-- KEYS    those of keys.lua
-- ARGV    for each job: position of its queue, member, fingerprint, record, flags of its run, its run from the state on ('' it has
--         none), history, due, first due, creation and expiry (0 none) in ms, max_age of its topic in ms (0 none), state as in the
--         run, end in ms
-- result  for each job a character: c created, e existing, x conflict
local entries = floor((#ARGV - A) / 14)
local function arg(i, j) return ARGV[A + (i - 1) * 14 + j] end
local again = call('GET', REPLY)
if again then return again end

-- known returns the outcome for a member that is known; nil: it is not.
local function known(q, member, rec, fingerprint, created)
  local stored = call('HGET', IDS, member)
  local width = stored and byte(stored, 1)
  local same = (stored and sub(stored, 2, 1 + width) or '') == fingerprint
  if rec then
    if #rec < 18 or byte(rec, 1) ~= FORM then return 'x' end
    local at = decode_number(rec, 13, 18) - (read_numbers(rec)[TAG_CREATED] or 0)
    return (same and queue_number(rec) == q.n and at == created) and 'e' or 'x'
  end
  local forget = stored and match(sub(stored, 2 + width), '^%S %d+ %S+ (%d+)')
  if forget and tonumber(forget) > now then return same and 'e' or 'x' end
end

read_agenda_head()
local codes, records, runs, histories, ids, forget, kept, ttls, ended, put = {}, {}, {}, {}, {}, {}, {}, {}, {}, {}
for i = 1, entries do
  local q, member, fingerprint, rec = queues[tonumber(arg(i, 1))], arg(i, 2), arg(i, 3), arg(i, 4)
  local created, state, finished = tonumber(arg(i, 10)), arg(i, 13), arg(i, 14)
  local before = put[member]
  local code
  if before then
    code = (before.q == q and before.created == created and before.fingerprint == fingerprint) and 'e' or 'x'
  else
    code = known(q, member, call('HGET', JOBS, member), fingerprint, created)
  end
  codes[i] = code or 'c'
  if not code then
    put[member] = { q = q, created = created, fingerprint = fingerprint }
    local t, first, history, rest = q.topic, tonumber(arg(i, 9)), arg(i, 7), arg(i, 6)
    if state == '-' and order.on(q) then
      order.start(q)
      rec = rec .. encode_field(TAG_ORDER, order.add_number(member, created, first))
    end
    records[#records + 1] = member
    records[#records + 1] = rec
    if history ~= '' then
      histories[#histories + 1] = member
      histories[#histories + 1] = history
    end
    local size = #rec
    add_counter(t, 'reg', 1)
    local entry = string.char(#fingerprint) .. fingerprint
    if state == '-' then
      add_counter(t, 'b', size)
      local ttl = ttl_end(arg(i, 11) ~= '0' and tonumber(arg(i, 11)) or nil, first, tonumber(arg(i, 12)))
      if ttl then
        ttls[#ttls + 1] = int(ttl)
        ttls[#ttls + 1] = member
      end
      add_due(q, tonumber(arg(i, 8)), member)
    else
      size = size + #history
      add_counter(t, state, 1)
      add_counter(t, state .. 'b', size)
      ended[t[state]] = ended[t[state]] or {}
      table.insert(ended[t[state]], finished)
      table.insert(ended[t[state]], member)
      local moment = int(tonumber(finished) + retention_limits(t).window)
      if fingerprint ~= '' then
        entry = entry .. state .. ' ' .. finished .. ' ' .. match(rest, '^%S+ %S+ (%S+)') .. ' ' .. moment
        forget[#forget + 1] = moment
        forget[#forget + 1] = member
      end
    end
    if rest ~= '' then
      runs[#runs + 1] = member
      runs[#runs + 1] = '- ' .. arg(i, 5) .. ' ' .. size .. ' ' .. rest
    end
    if fingerprint ~= '' then
      ids[#ids + 1] = member
      ids[#ids + 1] = entry
      if state == '-' then kept[#kept + 1] = member end
    end
    q.touched = true
  end
end
-- The records are the first write, so that the call is refused whole while memory is full.
call_in_chunks('HSET', JOBS, records)
call_in_chunks('HSET', RUNS, runs)
call_in_chunks('HSET', ATTEMPTS, histories)
call_in_chunks('HSET', IDS, ids)
call_in_chunks('ZREM', FORGET, kept)
call_in_chunks('ZADD', FORGET, forget)
set_ttls(ttls)
for key, list in pairs(ended) do call_in_chunks('ZADD', key, list) end
order.save_last()
for _, q in ipairs(queues) do
  if q.touched then update_agenda(q) end
end
close()
local reply = table.concat(codes)
call('SET', REPLY, reply, 'EX', REPLY_TTL)
return reply
