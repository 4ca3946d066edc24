-- The beginning of every script: Redis's commands, the clock, and numbers as text. The constants that Go and Lua share come before
-- it (script.go).
local call, floor = redis.call, math.floor
local byte, sub, match, find = string.byte, string.sub, string.match, string.find

-- The clock in milliseconds: now rounds down, for comparing; later rounds up, for adding waits, so that none is short.
local clock = call('TIME')
local now = tonumber(clock[1]) * 1000 + floor(tonumber(clock[2]) / 1000)
local later = tonumber(clock[2]) % 1000 > 0 and now + 1 or now

-- int writes a number, which must be whole; text is one already. Joined with text, Lua writes 14 digits of a number, in less
-- time.
local function int(n)
  if type(n) == 'string' then return n end
  return n < 1e14 and n > -1e14 and n .. '' or string.format('%.0f', n)
end
-- plus writes the number that follows a text of one.
local pluses = {}
local function plus(n)
  local text = pluses[n]
  if not text then
    text = int(n + 1)
    pluses[n] = text
  end
  return text
end
local NOW = int(now)

-- many calls a command with a long list of arguments, in chunks (of an even length) that fit Lua's stack.
local function many(command, key, list)
  for from = 1, #list, 1000 do
    call(command, key, unpack(list, from, math.min(from + 999, #list)))
  end
end
