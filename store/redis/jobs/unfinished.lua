-- Reads the keys of the unfinished jobs of lanes, until it has some. Changes nothing.
-- KEYS    1 clock, then for each lane: due, ready, claimed
-- ARGV    those of order.lua (4 and 5 are in the first lane), 6 most, 7 states: of 's' scheduled, 'r' ready, 'c' running
-- result  how many lanes were read, then for each of them with jobs: its position, {keys in due and due times}, 1 if due may have
--         more, {keys in ready and claimed}
local most, states = tonumber(ARGV[6]), ARGV[7]
local scheduled, ready, running = find(states, 's'), find(states, 'r'), find(states, 'c')
-- Jobs in ready were due, so they are not due in the future unless the clock was set back. Those in claimed may be: expired ones are
-- claimed before they are due.
local ahead = tonumber(call('HGET', KEYS[1], 'ahead') or 0) > now
local listed = ready or scheduled and ahead -- whether ready may have such jobs

-- is_future reports whether jobs in ready cannot be among those of a lane that come next: these begin after at, and are read up to the
-- last that was found in due if there is more.
local bound = low
local function is_future(at, found, more)
  local least = bound
  if newest and more then
    least = tonumber(found[#found])
  elseif not newest and at and at > (least or 0) then
    least = at
  end
  return not ahead and least and least > now
end

if scheduled and not ready then
  low = math.max(low or 0, now + 1)
elseif ready and not scheduled then
  high = math.min(high or now, now)
end

local result, read, n = { 0 }, 0, 0
for k = 2, #KEYS, 3 do
  if n >= most then break end
  read = read + 1
  if call('EXISTS', KEYS[k], KEYS[k + 1], KEYS[k + 2]) > 0 then
    local found, more, others, at, member = {}, false, {}, nil, nil
    if k == 2 then at, member = tonumber(ARGV[4]), ARGV[5] end
    if scheduled or ready then found, more = read_from(KEYS[k], find_start(KEYS[k], at, member), most - n) end
    if listed and not is_future(at, found, more) then others = call('LRANGE', KEYS[k + 1], 0, -1) end
    if running then
      for _, key in ipairs(call('ZRANGE', KEYS[k + 2], 0, -1)) do others[#others + 1] = key end
    end
    n = n + #found / 2 + #others
    if #found + #others > 0 then result[#result + 1] = { read, found, more and 1 or 0, others } end
  end
end
result[1] = read
return result
