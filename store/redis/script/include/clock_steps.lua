-- Steps of the clock, as the field steps of clock holds them: 'epoch:by:from,…', the oldest first. By is how far the clock
-- was set, in ms. Moments before from are the old clock's; so are those in the future, if they name something that has
-- happened.
local function newer(text, epoch)
  local list = {}
  for n, by, from in string.gmatch(text or '', '(%d+):(%-?%d+):(%d+)') do
    if tonumber(n) > epoch then list[#list + 1] = { epoch = n, by = tonumber(by), from = tonumber(from) } end
  end
  return list
end

-- rescored converts the time of a past event to the clock after a step.
local function rescored(at, step, now)
  if at >= step.from and at <= now then return at end
  return math.min(at + step.by, now)
end

-- rescore_starts moves the starts that a rate counts.
local function rescore_starts(list, step, now)
  for _, g in ipairs(list) do
    local at = rescored(g.at, step, now)
    g.at, g.last = at, g.last + at - g.at
  end
  table.sort(list, function(a, b) return a.last < b.last end)
end
