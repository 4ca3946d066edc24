-- grant_starts adds starts to a window. Up to COUNTED_STARTS a window are counted one by one. Of more, those within a 64th of the
-- window, and those for which there are too many groups, share a group and count until its last start leaves: longer than necessary,
-- never shorter. Slacks differ, so starts may leave before others that were granted earlier: they join the group that leaves next
-- after them.
local GROUPS = 80
local function grant_starts(list, at, last, n, starts, per)
  local i = #list + 1
  while i > 1 and list[i - 1].last > last do i = i - 1 end
  local before, after, full, g = list[i - 1], list[i], #list >= GROUPS, nil
  if before and before.at == at and before.last == last then
    g = before
  elseif starts > COUNTED_STARTS then
    if after and (full or (after.last - last) * 64 <= per) then
      g = after
    elseif before and (full or (at - before.at) * 64 <= per and last - at <= before.last - before.at) then
      g = before
    end
  end
  if g then
    g.at, g.last, g.n = math.min(g.at, at), math.max(g.last, last), g.n + n
  else
    table.insert(list, i, { at = at, last = last, n = n })
  end
end
