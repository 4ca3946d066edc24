-- Adds up the bytes of a topic's jobs that ended so, and sets their counter when it does not agree.
-- KEYS    1 stats  2 their list  3 runs
-- ARGV    the counter's name, place in the list to begin at, how many jobs, bytes of those before, what must be as it was
--         when the counting began ('' nothing)
-- result  how many jobs were read, bytes with these, what must stay as it is, 1 when the counter was set, or -1 when
--         something is not as it must be
call('ZREM', KEYS[2], '') -- a first write that is allowed while memory is full, see keys.lua
local from, most, sum = tonumber(ARGV[2]), tonumber(ARGV[3]), tonumber(ARGV[4])
local stored, count = tonumber(call('HGET', KEYS[1], ARGV[1]) or 0), call('ZCARD', KEYS[2])
local first, last = call('ZRANGE', KEYS[2], 0, 0)[1] or '', call('ZRANGE', KEYS[2], -1, -1)[1] or ''
local text, set = table.concat({ int(stored), count, first, last }, ' '), 0
if ARGV[5] ~= '' and ARGV[5] ~= text then return { 0, 0, text, -1 } end
local members = call('ZRANGE', KEYS[2], from, from + most - 1)
for i = 1, #members, 1000 do
  for _, line in ipairs(call('HMGET', KEYS[3], unpack(members, i, math.min(i + 999, #members)))) do
    sum = sum + tonumber(line and string.match(line, '^%S+ %S+ (%d+)') or 0)
  end
end
if from + #members >= count and sum ~= stored then
  call('HSET', KEYS[1], ARGV[1], int(sum))
  set = 1
end
return { #members, int(sum), text, set }
