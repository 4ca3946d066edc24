-- Grants starts to topics.
-- KEYS    1 the reply of this call  2 clock, then for each ask: its topic's rate
-- ARGV    for each ask: starts a window, window in ms, slack in ms, starts asked for
-- result  the moment of the grants, then for each ask: granted, ms until more can be (0 when all were)
local function words(text)
  local list = {}
  for word in string.gmatch(text, '%S+') do list[#list + 1] = word end
  return list
end

local again = call('GET', KEYS[1])
if again then return words(again) end
call('DEL', KEYS[1]) -- a first write that is allowed while memory is full, see keys.lua

local clocked = call('HMGET', KEYS[2], 'epoch', 'steps')
local epoch = clocked[1] and '@' .. clocked[1] or ''

-- SPARE is how much longer than they count starts are stored: a clock that is set ahead by less removes none.
local SPARE = 7200000
local at, result, windows, ends = 1, { int(now) }, {}, {}
for i = 3, #KEYS do
  local key = KEYS[i]
  local starts, per, slack = tonumber(ARGV[at]), tonumber(ARGV[at + 1]), tonumber(ARGV[at + 2])
  local asked = tonumber(ARGV[at + 3])
  local list, n = count_window(windows[key] or parse_permits(call('GET', key), clocked), per, now)
  local granted, wait = math.max(0, math.min(asked, starts - n)), 0
  if granted > 0 then grant_starts(list, now, later + slack, granted, starts, per) end
  if granted < asked and list[1] then wait = list[1].last + per - now end
  result[#result + 1] = int(granted)
  result[#result + 1] = int(wait)
  windows[key], ends[key] = list, list[#list] and list[#list].last + per - now
  at = at + 4
end
for key, list in pairs(windows) do
  if list[1] then call('SET', key, format_groups(list) .. epoch, 'PX', int(ends[key] + SPARE)) else call('DEL', key) end
end
call('SET', KEYS[1], table.concat(result, ' '), 'EX', REPLY_TTL)
return result
