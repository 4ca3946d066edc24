-- Records which run of the server the shard was checked for, also while memory is full.
-- KEYS    1 checked
-- ARGV    the run id and when the check ended in ms
-- result  OK
call('DEL', KEYS[1]) -- a first write that is allowed while memory is full, see keys.lua
return call('SET', KEYS[1], ARGV[1])
