-- The beginning of every script, after the constants that Go and Lua share (script.go): Redis's commands, the clock, and numbers as
-- text.
local call, floor = redis.call, math.floor
local auditing = false -- see audit.lua
local byte, sub, match, find = string.byte, string.sub, string.match, string.find

-- The clock in milliseconds: now rounds down, for comparing; later rounds up, for adding waits, so that none is short.
local clock = call('TIME')
local now = tonumber(clock[1]) * 1000 + floor(tonumber(clock[2]) / 1000)
local later = tonumber(clock[2]) % 1000 > 0 and now + 1 or now

-- int formats a whole number; text is returned as it is. Joining a number with text is faster than string.format, and writes up to
-- 14 digits.
local function int(n)
  if type(n) == 'string' then return n end
  return n < 1e14 and n > -1e14 and n .. '' or string.format('%.0f', n)
end
-- increment returns the number after n, both as text.
local incremented = {}
local function increment(n)
  local text = incremented[n]
  if not text then
    text = int(n + 1)
    incremented[n] = text
  end
  return text
end
local NOW = int(now)

-- call_in_chunks calls a command with a long list of arguments, in chunks (of an even length) that fit Lua's stack.
local function call_in_chunks(command, key, list)
  for from = 1, #list, 1000 do
    call(command, key, unpack(list, from, math.min(from + 999, #list)))
  end
end
