-- Adds up the bytes of the jobs in lists of ended jobs, and sets the counters that do not agree.
-- KEYS    1 runs, then for each list: stats, the list
-- ARGV    how many jobs to read; of the first list: place to begin at, bytes of the jobs before, what must be as it was when the
--         counting began ('' nothing); then for each list: its counter's name
-- result  lists that are done; of the next one: how many jobs were read, bytes with these, what must stay as it is; how many
--         counters were set, or -1 when the first list is not as it must be; what was wrong: {stats, text, …}
call('ZREM', KEYS[3], '') -- a first write that is allowed while memory is full, see keys.lua
local room, from, sum, expected = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3]), ARGV[4]
local changed, wrong = 0, {}
for i = 1, #ARGV - 4 do
  local stats, list, counter = KEYS[2 * i], KEYS[2 * i + 1], ARGV[4 + i]
  local stored, count = tonumber(call('HGET', stats, counter) or 0), call('ZCARD', list)
  local first, last = call('ZRANGE', list, 0, 0)[1] or '', call('ZRANGE', list, -1, -1)[1] or ''
  local text = table.concat({ int(stored), count, first, last }, ' ')
  if expected ~= '' and expected ~= text then return { 0, 0, 0, '', -1, {} } end
  local members = room > 0 and call('ZRANGE', list, from, from + room - 1) or {}
  for k = 1, #members, 1000 do
    for _, line in ipairs(call('HMGET', KEYS[1], unpack(members, k, math.min(k + 999, #members)))) do
      sum = sum + tonumber(line and match(line, '^%S+ %S+ (%d+)') or 0)
    end
  end
  if from + #members < count then return { i - 1, #members, int(sum), text, changed, wrong } end
  if sum ~= stored then
    call('HSET', stats, counter, int(sum))
    changed = changed + 1
    wrong[2 * changed - 1], wrong[2 * changed] = stats, counter .. ' is ' .. int(stored) .. ', counted ' .. int(sum)
  end
  room, from, sum, expected = room - #members, 0, 0, ''
end
return { #ARGV - 4, 0, 0, '', changed, wrong }
