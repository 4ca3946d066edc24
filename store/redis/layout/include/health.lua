-- next_health returns the health of a lane after attempts, as text: see policy.Health.After, which it repeats, and
-- store.FormatHealth; nil: the lane is healthy. It also returns the first failure of the series. failure is the newest failure as text.
local function next_health(line, delivered, failed, failure)
  local h = {}
  for word in string.gmatch(line or '', '%S+') do h[#h + 1] = word end
  for i = 1, 16 do h[i] = tonumber(h[i]) or 0 end
  if now - h[5] > HEALTH_KEPT then
    if failed == 0 then return nil end
    for i = 1, 16 do h[i] = 0 end
    h[5] = now
  end
  local at, good, bad = math.max(now, h[5]), 0, 0
  local passed = 2 * (floor(at / 60000) - floor(h[5] / 60000))
  for i = 15, 6, -1 do h[i] = i - passed >= 6 and h[i - passed] or 0 end
  for i = 6, 14, 2 do good, bad = good + h[i], bad + h[i + 1] end
  if failed > 0 then
    if h[4] == 0 and (bad == 0 or bad < good) then h[1], h[2], h[3] = at, 0, 0 end
    h[16] = at
  elseif at - h[16] >= HEALTHY_AFTER then
    return nil
  end
  h[2], h[3], h[4], h[5] = h[2] + delivered + failed, h[3] + failed, delivered > 0 and 0 or h[4] + failed, at
  h[6], h[7] = h[6] + delivered, h[7] + failed
  for i = 1, 16 do h[i] = int(h[i]) end
  if failed > 0 then return table.concat(h, ' ', 1, 16) .. ' ' .. failure, h[1] end
  return table.concat(h, ' '), h[1]
end

-- change_health adds the attempts of this call to the health of its queues, and returns lines: the first item of the queue, then its
-- health before and after, with a tab between. Most shards have no health: then deliveries change nothing.
local function change_health()
  local numbers, tried, lines = {}, {}, {}
  local any = call('EXISTS', HEALTH) == 1
  for _, q in ipairs(queues) do
    if q.failed or q.delivered and any then
      tried[#tried + 1], numbers[#numbers + 1] = q, q.n
    end
  end
  if #tried == 0 then return '' end
  local before = any and call('HMGET', HEALTH, unpack(numbers)) or {}
  for i, q in ipairs(tried) do
    if q.failed or before[i] then
      local after, since = next_health(before[i], q.delivered or 0, q.failed or 0, q.failure)
      if after then
        call('HSET', HEALTH, q.n, after)
        call('ZADD', q.topic.unhealthy, since, q.n)
        add_lane_history(q)
      elseif before[i] then
        call('HDEL', HEALTH, q.n)
        call('ZREM', q.topic.unhealthy, q.n)
      end
      lines[#lines + 1] = '\n' .. q.first .. '\t' .. (before[i] or '') .. '\t' .. (after or '')
    end
  end
  return table.concat(lines)
end
