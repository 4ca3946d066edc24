-- Writes wake-ups for those of the queues that have claimable jobs.
-- KEYS    those of keys.lua
-- ARGV    none
-- result  how many were written
allow()
local written = 0
for _, q in ipairs(queues) do
  q.notify = true
  local more, blocked = update_agenda(q)
  if more and not blocked then written = written + 1 end
end
return written
