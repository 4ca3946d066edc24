-- Reads jobs by name without their bodies. Changes nothing. Before it stands bare.lua.
-- KEYS    1 jobs  2 runs  3 names
-- ARGV    members
-- result  now, then of the first of them, as far as it goes: records, runs, names of their queues
local records, runs, names = bare(KEYS[1], KEYS[2], KEYS[3], ARGV)
local clock = redis.call('TIME')
return { string.format('%.0f', tonumber(clock[1]) * 1000 + math.floor(tonumber(clock[2]) / 1000)), records, runs,
  names }
