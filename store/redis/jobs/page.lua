-- Reads a page of a sorted set, by score then member, without the jobs' bodies. Changes nothing.
-- KEYS    1 jobs  2 runs  3 the set  4 names
-- ARGV    least score, greatest score (as ZRANGEBYSCORE takes them), most, score and member to begin after ('' none)
-- result  now, members and scores, records, runs, names of their queues, 1 when there may be more
local key, least, most = KEYS[3], ARGV[1], tonumber(ARGV[3])
local score, after = ARGV[4], ARGV[5]
local rank
if score == '' then
  rank = call('ZCOUNT', key, '-inf', '(' .. (string.gsub(least, '^%(', '')))
  if string.sub(least, 1, 1) == '(' then rank = call('ZCOUNT', key, '-inf', string.sub(least, 2)) end
else
  -- Among the members of one score, the order is that of the bytes: the place after a member that may be gone by now
  -- is found by halving.
  local low, high = call('ZCOUNT', key, '-inf', '(' .. score), call('ZCOUNT', key, '-inf', score)
  while low < high do
    local middle = floor((low + high) / 2)
    local member = call('ZRANGE', key, middle, middle)[1]
    if member and member <= after then low = middle + 1 else high = middle end
  end
  rank = low
end
local last = call('ZCOUNT', key, '-inf', ARGV[2]) - 1
local found = {}
if rank <= last then found = call('ZRANGE', key, rank, math.min(last, rank + most - 1), 'WITHSCORES') end
local members = {}
for i = 1, #found, 2 do members[#members + 1] = found[i] end
local records, runs, names = read_without_body(KEYS[1], KEYS[2], KEYS[4], members)
local more = #records < #members or #members == most
for i = #found, 2 * #records + 1, -1 do found[i] = nil end
return { NOW, found, records, runs, names, more and 1 or 0 }
