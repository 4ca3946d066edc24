-- back takes up to n starts out of those granted at a moment, with their slack, that have not left: what counts after that
-- is of other grants. Up to 64 a window they have a group of their own; of more, they may be in any that began no later and
-- leaves no earlier: no more are taken than those hold. They are taken first of the groups that leave first of all that
-- leave no earlier, whoever's they are: then there is for each start that stays a place that leaves no earlier than it has to.
local function back(list, at, slack, n, starts)
  local large, most = starts > 64, 0
  for _, g in ipairs(list) do
    if (g.at == at or large and g.at < at) and g.last >= at + slack then most = most + g.n end
  end
  n = math.min(n, most)
  for _, g in ipairs(list) do
    if n > 0 and (g.at == at or large) and g.last >= at + slack then
      local less = math.min(n, g.n)
      g.n, n = g.n - less, n - less
    end
  end
end
