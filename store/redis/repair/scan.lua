-- Names the next jobs of a shard, and the numbers of their queues. Changes nothing.
-- KEYS    1 jobs
-- ARGV    cursor ('0' from the beginning), about how many jobs
-- result  next cursor ('0' at the end), bytes of the records, members, numbers of their queues, for each 1 if it expires later;
--         members whose records cannot be read
local found = call('HSCAN', KEYS[1], ARGV[1], 'COUNT', ARGV[2])
local members, numbers, expiring, unreadable, size = {}, {}, {}, {}, 0
for i = 1, #found[2], 2 do
  local member, rec = found[2][i], found[2][i + 1]
  size = size + #member + #rec
  if #rec >= 18 then
    local expires = read_lifetime(rec)
    members[#members + 1] = member
    numbers[#numbers + 1] = queue_number(rec)
    expiring[#expiring + 1] = expires and expires > now and 1 or 0
  else
    unreadable[#unreadable + 1] = member
  end
end
return { found[1], size, members, numbers, expiring, unreadable }
