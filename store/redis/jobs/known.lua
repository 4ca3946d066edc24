-- Reports what is known of ids. Changes nothing.
-- KEYS    those of keys.lua
-- ARGV    members
-- result  a digit for each: 0 unknown, 1 the id of a removed job, 2 of an unfinished job, 3 of an ended one
local result = {}
for i = A + 1, #ARGV do
  local status = '0'
  if call('HEXISTS', JOBS, ARGV[i]) == 1 then
    local state = string.match(call('HGET', RUNS, ARGV[i]) or '', '^%S+ %S+ %d+ (%S)') or '-'
    status = state == '-' and '2' or '3'
  else
    local stored = call('HGET', IDS, ARGV[i])
    local forget = stored and string.match(string.sub(stored, 2 + string.byte(stored, 1)), '^%S %d+ %S+ (%d+)')
    if forget and tonumber(forget) > now then status = '1' end
  end
  result[#result + 1] = status
end
return table.concat(result)
