-- Puts queues on the bell, those with something to claim.
-- KEYS    those of keys.lua
-- ARGV    none
-- result  how many were rung
allow()
local rung = 0
for _, q in ipairs(queues) do
  q.ring = true
  local more, blocked = update_agenda(q)
  if more and not blocked then rung = rung + 1 end
end
return rung
