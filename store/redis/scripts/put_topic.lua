-- Writes a topic's policy.
-- KEYS    1 topics
-- ARGV    topic's name, its policy, the revision that must be stored (0 any, -1 none), the call's token
-- result  the new revision, 0 when the stored one is another
-- The stored form is '<revision> <token> <policy>'; the field '' holds the revision of all. It follows the clock, so that
-- it grows also where a failover has taken the newest policies back: nobody must take another policy for one he has.
local stored = call('HGET', KEYS[1], ARGV[1])
local revision, token = '0', ''
if stored then revision, token = string.match(stored, '^(%d+) (%S+) ') end
if token == ARGV[4] then return revision end
if ARGV[3] ~= '0' and (ARGV[3] == '-1' and '0' or ARGV[3]) ~= revision then return '0' end
local new = int(math.max(tonumber(call('HGET', KEYS[1], '') or 0) + 1, now))
call('HSET', KEYS[1], ARGV[1], new .. ' ' .. ARGV[4] .. ' ' .. ARGV[2], '', new)
return new
