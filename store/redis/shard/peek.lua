-- Reads jobs without their bodies. Changes nothing.
-- KEYS    1 jobs  2 runs  3 names
-- ARGV    members
-- result  now, then of the first members, as many as are read at once: records, runs, names of their queues
local records, runs, names = read_without_body(KEYS[1], KEYS[2], KEYS[3], ARGV)
return { NOW, records, runs, names }
