-- Counts topics' jobs, and sets the counters that do not agree.
-- KEYS    1 jobs; for each topic: stats, done, dead, cancelled, topic_lanes:<topic>, then for each of its queues: due, ready, claimed
-- ARGV    the most jobs whose bytes to add up; for each topic: how many of its queues are given; how many jobs of the queues
--         before these are due, ready, claimed; 1 when these are the last ones; then what must be as it was when the counting
--         began ('' nothing): the counters; how many queues the topic has
-- result  for each topic: due, ready, claimed with these queues, the counters before ('' it was left out: the topics before
--         it had the most jobs), how many were set, or -1 when something is not as it must be; what was wrong; how many jobs are
--         in its lists of delivered, dead and cancelled jobs
-- What has ended is counted only: retention removes it. So the ended are no fewer than those that are kept, and the
-- registered are the sum. The bytes of a topic's unfinished jobs stay as they are if the jobs are more, or not all in these queues.
local room = tonumber(ARGV[1])
call('ZREM', KEYS[6], '') -- a first write that is allowed while memory is full, see keys.lua

-- bytes adds up the records of the jobs in queues whose keys are those from first to last.
local function bytes(first, last)
  local sum = 0
  for k = first, last, 3 do
    for _, members in ipairs({ call('ZRANGE', KEYS[k], 0, -1), call('LRANGE', KEYS[k + 1], 0, -1), call('ZRANGE', KEYS[k + 2], 0, -1) }) do
      for _, member in ipairs(members) do sum = sum + call('HSTRLEN', KEYS[1], member) end
    end
  end
  return sum
end

local k, result = 1, {}
for a = 1, #ARGV - 7, 7 do
  local stats, done, dead, cancelled, lanes = KEYS[k + 1], KEYS[k + 2], KEYS[k + 3], KEYS[k + 4], KEYS[k + 5]
  local due, ready, claimed = tonumber(ARGV[a + 2]), tonumber(ARGV[a + 3]), tonumber(ARGV[a + 4])
  k = k + 5
  local first = k + 1
  for _ = 1, tonumber(ARGV[a + 1]) do
    due = due + call('ZCARD', KEYS[k + 1])
    ready = ready + call('LLEN', KEYS[k + 2])
    claimed = claimed + call('ZCARD', KEYS[k + 3])
    k = k + 3
  end
  local stored = call('HMGET', stats, 'reg', 'ready', 'claimed', 'd', 'x', 'c', 'b')
  for i = 1, 7 do stored[i] = tonumber(stored[i] or 0) end
  local text, set, wrong = table.concat(stored, ' ', 1, 6), 0, {}
  if room < 0 then
    text = ''
  elseif ARGV[a + 5] == '1' then
    if call('ZCARD', lanes) ~= tonumber(ARGV[a + 7]) or ARGV[a + 6] ~= '' and ARGV[a + 6] ~= text then
      set = -1
    else
      local d = math.max(stored[4], call('ZCARD', done))
      local x = math.max(stored[5], call('ZCARD', dead))
      local c = math.max(stored[6], call('ZCARD', cancelled))
      local jobs, b = due + ready + claimed, stored[7]
      if jobs == 0 or jobs <= tonumber(ARGV[1]) and k - first + 1 == 3 * tonumber(ARGV[a + 7]) then
        b, room = bytes(first, k), room - jobs
      end
      local right = { jobs + d + x + c, ready, claimed, d, x, c, b }
      for i, field in ipairs({ 'reg', 'ready', 'claimed', 'd', 'x', 'c', 'b' }) do
        if right[i] ~= stored[i] then
          call('HSET', stats, field, int(right[i]))
          set = set + 1
          wrong[set] = field .. ' is ' .. int(stored[i]) .. ', counted ' .. int(right[i])
        end
      end
    end
  end
  local kept = { call('ZCARD', done), call('ZCARD', dead), call('ZCARD', cancelled) }
  for _, v in ipairs({ due, ready, claimed, text, set, table.concat(wrong, '; '), kept }) do result[#result + 1] = v end
end
return result
