-- Takes the carrier's lock, also while memory is full. A TTL above the lock's was set before the clock was set back. It
-- is shortened to the lock's, within which the holder extends it if it is alive.
-- KEYS    1 the lock
-- ARGV    value, ms
-- result  1 when it was taken, else 0
if call('EXISTS', KEYS[1]) == 1 then
  if call('PTTL', KEYS[1]) > tonumber(ARGV[2]) then call('PEXPIRE', KEYS[1], ARGV[2]) end
  return 0
end
call('DEL', KEYS[1]) -- a first write that is allowed while memory is full, see keys.lua
call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])
return 1
