-- The history of a topic, and of its namespace (see store.History): a hash of lines. A line has a minute or an hour, as its number since
-- 1970, and the counts of store.HistoryCounts.Numbers. The field now is of the newest minute; when another begins, it is added to
-- m<its number in the ring> and to h<that of its hour>.

-- sum_line returns the line of a time with more counts. The line before counts if it is of that time.
local function sum_line(before, at, counts)
  local line, i = { int(at) }, 1
  if before and match(before, '^%d+') == line[1] then
    for n in string.gmatch(before, ' (%d+)') do
      i = i + 1
      line[i] = n
    end
  end
  for k = 1, HISTORY_NUMBERS do line[k + 1] = int((line[k + 1] or 0) + (counts[k] or 0)) end
  return table.concat(line, ' ')
end

-- end_minute adds the line of a minute to those of the rings.
local function end_minute(key, line)
  local at, counts = nil, {}
  for n in string.gmatch(line, '%d+') do
    if at then counts[#counts + 1] = n else at = tonumber(n) end
  end
  local hour = floor(at / 60)
  local m, h = 'm' .. at % HISTORY_MINUTES, 'h' .. hour % HISTORY_HOURS
  local before = call('HMGET', key, m, h)
  call('HSET', key, m, sum_line(before[1], at, counts), h, sum_line(before[2], hour, counts))
end

local function add_history(key, counts)
  local minute, before = floor(now / 60000), call('HGET', key, 'now')
  local same = before and match(before, '^%d+') == int(minute)
  if before and not same then end_minute(key, before) end
  call('HSET', key, 'now', sum_line(before, minute, counts))
  if not same then call('PEXPIRE', key, (HISTORY_HOURS + 1) * 3600000) end
end

-- count_history adds to a number in the history of a topic; write_history writes it.
local function count_history(t, i)
  local counts = t.counts or {}
  t.counts, counts[i] = counts, (counts[i] or 0) + 1
end

-- is_counted reports whether a topic has a history: not those of Ringback's own jobs, which begin with _.
local function is_counted(t)
  local name = match(t.name, '/(.*)$')
  return byte(name) ~= 95 or name == CALLBACK_TOPIC
end

-- add_lane_history adds the attempts of this call to the history of a lane that has health, if it has a place: see store.LanePlaces.
local function add_lane_history(q)
  local t, places = q.topic, q.topic.history .. ':lanes'
  if not is_counted(t) then return end
  if not call('ZSCORE', places, q.n) and call('ZCARD', places) >= LANE_HISTORIES then
    local oldest = call('ZRANGE', places, 0, 0, 'WITHSCORES')
    if now - oldest[2] < 3600000 then return end
    call('ZREM', places, oldest[1])
  end
  call('ZADD', places, NOW, q.n)
  call('PEXPIRE', places, 3600000)
  add_history(sub(t.history, 1, -1 - #t.name) .. q.name, { q.delivered or 0, q.failed or 0 })
end

local function write_history()
  local sums = {} -- by the history of a namespace
  for _, t in ipairs(topics) do
    if t.counts and is_counted(t) then
      add_history(t.history, t.counts)
      local sum = sums[t.all_history] or {}
      for i, n in pairs(t.counts) do sum[i] = (sum[i] or 0) + n end
      sums[t.all_history] = sum
    end
  end
  for key, counts in pairs(sums) do add_history(key, counts) end
end
