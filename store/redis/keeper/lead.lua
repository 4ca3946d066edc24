-- Takes the carrier's lock, also while memory is full. A TTL above the lock's was set before the clock was set back: a
-- candidate that saw the same value for a lock's time takes it over.
-- KEYS    1 the lock
-- ARGV    value, ms, value of a lock to take over ('' none)
-- result  '' when it was taken, else the other's value when its lock ends later than ms from now, else '-'
local other = call('GET', KEYS[1])
if other then
  local late = call('PTTL', KEYS[1]) > tonumber(ARGV[2])
  if not (late and other == ARGV[3]) then return late and other or '-' end
end
call('DEL', KEYS[1]) -- a first write that is allowed while memory is full, see keys.lua
call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])
return ''
