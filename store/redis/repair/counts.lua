-- Counts a topic's jobs, and sets the counters that do not agree.
-- KEYS    1 stats  2 done  3 dead  4 cancelled  5 topic_lanes:<topic>, then for each queue: due, ready, claimed
-- ARGV    how many jobs of the queues before these are due, ready, claimed; 1 when these are the last ones; then what must
--         be as it was when the counting began ('' nothing): the counters; how many queues the topic has
-- result  due, ready, claimed with these queues, the counters before, how many were set, or -1 when something is not as it
--         must be
-- What has ended is counted only: retention removes it. So the ended are no fewer than those that are kept, and the
-- registered are the sum.
call('ZREM', KEYS[5], '') -- a first write that is allowed while memory is full, see keys.lua
local due, ready, claimed = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3])
for k = 6, #KEYS, 3 do
  due = due + call('ZCARD', KEYS[k])
  ready = ready + call('LLEN', KEYS[k + 1])
  claimed = claimed + call('ZCARD', KEYS[k + 2])
end
local stored = call('HMGET', KEYS[1], 'reg', 'ready', 'claimed', 'd', 'x', 'c')
for i = 1, 6 do stored[i] = tonumber(stored[i] or 0) end
local text = table.concat(stored, ' ')
local set = 0
if ARGV[4] == '1' then
  if call('ZCARD', KEYS[5]) ~= tonumber(ARGV[6]) or ARGV[5] ~= '' and ARGV[5] ~= text then
    set = -1
  else
    local d = math.max(stored[4], call('ZCARD', KEYS[2]))
    local x = math.max(stored[5], call('ZCARD', KEYS[3]))
    local c = math.max(stored[6], call('ZCARD', KEYS[4]))
    local right = { due + ready + claimed + d + x + c, ready, claimed, d, x, c }
    for i, field in ipairs({ 'reg', 'ready', 'claimed', 'd', 'x', 'c' }) do
      if right[i] ~= stored[i] then
        call('HSET', KEYS[1], field, int(right[i]))
        set = set + 1
      end
    end
  end
end
return { due, ready, claimed, text, set }
