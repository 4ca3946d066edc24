-- close ends a call that changed something: it writes attempts and counters, and wakes the carrier if the head of the agenda is
-- earlier now. Counters are written as sums, not as differences: where a crash of Redis leaves a part of a script behind, the next
-- script that changes a counter corrects it.
local function close()
  write_attempts()
  for _, t in ipairs(topics) do
    local sums, n = {}, 0
    for field, plus in pairs(t.plus) do
      if plus ~= 0 then
        n = n + 1
        sums[n] = field
      end
    end
    if n > 0 then
      local before = call('HMGET', t.stats, unpack(sums))
      for i = n, 1, -1 do
        local field = sums[i]
        sums[2 * i - 1], sums[2 * i] = field, (before[i] or 0) + t.plus[field]
      end
      call('HSET', t.stats, unpack(sums))
    end
  end
  if early and call('LLEN', CARRIER_WAKEUP) == 0 then call('RPUSH', CARRIER_WAKEUP, '1') end
end
