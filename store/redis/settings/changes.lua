-- The last changes of documents of a kind, '<revision> <name>' by revision.

-- log_change notes a change, before it is made: half a script must not hide one.
local function log_change(changes, revision, name, removes, kept)
  -- no such member: a first write that is allowed while memory is full, see keys.lua
  if removes then call('ZREM', changes, '') end
  call('ZADD', changes, revision, revision .. ' ' .. name)
  for _, old in ipairs(call('ZRANGE', changes, 0, -1 - kept)) do call('ZREM', changes, old) end
end
