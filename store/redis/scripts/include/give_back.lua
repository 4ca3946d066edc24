-- back takes up to n starts out of those granted at a moment, with their slack, that have not left: what counts after that
-- is of other grants. Up to COUNTED_STARTS a window they have a group of their own, whose end grant rounded up, unless the rate was
-- larger then: they go on counting. Of more, they may be in any that began no later and leaves no earlier: no more are
-- taken than those hold. They are taken first of the groups that leave first of all that leave no earlier, whoever's they
-- are: then there is for each start that stays a place that leaves no earlier than it has to.
local function give_back(list, at, slack, n, starts)
  local large, least, most = starts > COUNTED_STARTS, at + slack, 0
  for _, g in ipairs(list) do
    if large and g.at <= at and g.last >= least then most = most + g.n end
    if not large and g.at == at and (g.last == least or g.last == least + 1) then most = most + g.n end
  end
  n = math.min(n, most)
  for _, g in ipairs(list) do
    if n > 0 and g.last >= least and (large or g.at == at and g.last <= least + 1) then
      local less = math.min(n, g.n)
      g.n, n = g.n - less, n - less
    end
  end
end
