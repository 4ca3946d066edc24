-- Reports what is known of ids. Changes nothing.
-- KEYS    those of keys.lua
-- ARGV    members
-- result  a character for each: 0 unknown, - an unfinished job, the state of an ended job, in upper case of one that was removed
local result = {}
for i = A + 1, #ARGV do
  local status = '0'
  if call('HEXISTS', JOBS, ARGV[i]) == 1 then
    status = string.match(call('HGET', RUNS, ARGV[i]) or '', '^%S+ %S+ %d+ (%S)') or '-'
  else
    local stored = call('HGET', IDS, ARGV[i])
    local state, forget
    if stored then
      state, forget = string.match(string.sub(stored, 2 + string.byte(stored, 1)), '^(%S) %d+ %S+ (%d+)')
    end
    if forget and tonumber(forget) > now then status = string.upper(state) end
  end
  result[#result + 1] = status
end
return table.concat(result)
