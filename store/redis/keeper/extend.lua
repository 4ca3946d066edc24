-- Extends the carrier's lock.
-- KEYS    1 the lock
-- ARGV    value, ms
-- result  1, or 0 when another process has the lock or nobody has
if call('GET', KEYS[1]) ~= ARGV[1] then return 0 end
return call('PEXPIRE', KEYS[1], ARGV[2])
