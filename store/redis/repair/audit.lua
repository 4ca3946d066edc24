-- Has a script that repairs only look: a command that may write is not sent. It returns what it would have returned, as far as these
-- scripts ask: how many entries it would have removed or added. A score that it would have written is read by ZSCORE.
auditing = true
local send, written = call, {}
local READS = {}
for name in string.gmatch('EXISTS HEXISTS HGET HLEN HMGET HSCAN HSTRLEN LLEN LPOS LRANGE TIME ZCARD ZMSCORE ZRANGE ZRANGEBYSCORE ZSCAN', '%S+') do
  READS[name] = true
end

local function score(key, member)
  local own = written[key] and written[key][member]
  if own ~= nil then return own end
  return send('ZSCORE', key, member)
end
local function write_score(key, member, value)
  written[key] = written[key] or {}
  written[key][member] = value
end

local REPLIES = { ZSCORE = score }
function REPLIES.ZADD(key, ...)
  local list = { ... }
  for i = 1, #list, 2 do write_score(key, list[i + 1], tostring(list[i])) end
  return 0
end
function REPLIES.ZREM(key, ...)
  local n = 0
  for _, member in ipairs({ ... }) do
    if score(key, member) then n = n + 1 end
    write_score(key, member, false)
  end
  return n
end
function REPLIES.HDEL(key, ...)
  local n = 0
  for _, field in ipairs({ ... }) do n = n + send('HEXISTS', key, field) end
  return n
end
function REPLIES.HSETNX(key, field) return 1 - send('HEXISTS', key, field) end
function REPLIES.LREM(key, count, member)
  local n = #send('LPOS', key, member, 'COUNT', 0)
  count = math.abs(tonumber(count))
  return count > 0 and math.min(count, n) or n
end

call = function(command, ...)
  if READS[command] then return send(command, ...) end
  local reply = REPLIES[command]
  return reply and reply(...) or not reply and 0
end
