-- Reads the state of a topic. Changes nothing.
-- KEYS    1 stats:<topic>  2 rate:<topic>  3 clock
-- ARGV    the topic's rate: starts a window, window in ms (0 0 none)
-- result  running jobs, when the rate grants the next start (0 now)
local starts, per, free_at = tonumber(ARGV[1]), tonumber(ARGV[2]), 0
if starts > 0 then
  local permits = parse_permits(call('GET', KEYS[2]), call('HMGET', KEYS[3], 'epoch', 'steps'))
  local list, n = count_window(permits, per, now)
  if n >= starts then free_at = next_start(list, n, starts, per) end
end
return { call('HGET', KEYS[1], 'claimed') or '0', int(free_at) }
