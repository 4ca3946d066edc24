-- Takes the carrier's lock while memory is full, when SET is refused as a command but not after a first write.
-- KEYS    1 the lock
-- ARGV    value, ms
-- result  1 when it was taken
if redis.call('EXISTS', KEYS[1]) == 1 then return 0 end
redis.call('DEL', KEYS[1])
redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])
return 1
