-- Writes a lane's own settings, or removes them.
-- KEYS    those of keys.lua, with the lane's queue when it has a number; then
--         lane_settings, configured_lanes:<topic>, queues, lane_changes
-- ARGV    queue's name, lane, the revision that must be stored (0 any, -1 none), what scripts need of the settings (paused
--         concurrency starts per), the settings ('' removes them), how many changes are kept
-- result  the new revision, 0 when they were removed, ! when the stored one is another
-- The field '' of lane_settings holds the newest revision. It follows the clock, see put_document.lua. A lane without
-- jobs needs no number. STALE is returned if it got one meanwhile, so that its agenda is updated.
local LANE_SETTINGS, CONFIGURED_LANES, QUEUES, CHANGES = KEYS[K + 1], KEYS[K + 2], KEYS[K + 3], KEYS[K + 4]
local name, lane = ARGV[A + 1], ARGV[A + 2]
local again = call('GET', REPLY)
if again then return again end
if nq == 0 and call('HEXISTS', QUEUES, name) == 1 then return redis.error_reply('STALE queue without its number') end
local stored = call('HGET', LANE_SETTINGS, name)
local revision = stored and string.match(stored, '^%d+') or '0'
if ARGV[A + 3] ~= '0' and (ARGV[A + 3] == '-1' and '0' or ARGV[A + 3]) ~= revision then
  call('SET', REPLY, '!', 'EX', REPLY_TTL)
  return '!'
end
read_agenda_head()
local newest = int(math.max(tonumber(call('HGET', LANE_SETTINGS, '') or 0) + 1, now))
local new, line = '0', nil
log_change(CHANGES, newest, name, ARGV[A + 5] == '', ARGV[A + 6]) -- the first write, refused while memory is full
if ARGV[A + 5] ~= '' then
  new, line = newest, newest .. ' ' .. ARGV[A + 4]
  call('HSET', LANE_SETTINGS, name, new .. ' ' .. ARGV[A + 5], '', newest)
  call('HSET', LANE_LIMITS, name, line)
  call('ZADD', CONFIGURED_LANES, 0, lane)
else
  call('HDEL', LANE_SETTINGS, name)
  call('HSET', LANE_SETTINGS, '', newest)
  call('HDEL', LANE_LIMITS, name)
  call('ZREM', CONFIGURED_LANES, lane)
end
for _, q in ipairs(queues) do
  q.lane, q.notify = line, true
  update_agenda(q)
end
close()
call('SET', REPLY, new, 'EX', REPLY_TTL)
return new
