-- Reports which ids an insertion would find known. Changes nothing.
-- KEYS    those of keys.lua
-- ARGV    members
-- result  a character for each: 1 known, 0 not
local result = {}
for i = A + 1, #ARGV do
  local known = call('HEXISTS', JOBS, ARGV[i]) == 1
  if not known then
    local stored = call('HGET', IDS, ARGV[i])
    local forget = stored and string.match(string.sub(stored, 2 + string.byte(stored, 1)), '^%S %d+ %S+ (%d+)')
    known = forget ~= nil and forget ~= false and tonumber(forget) > now
  end
  result[#result + 1] = known and '1' or '0'
end
return table.concat(result)
