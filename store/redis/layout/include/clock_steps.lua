-- steps_after parses the steps of the clock after an epoch, the oldest first. The field steps of clock holds them as
-- 'epoch:by:from,…': by is how far the clock was set, in ms. Times before from were read from the old clock, and so were future
-- times of past events.
local function steps_after(text, epoch)
  local list = {}
  for n, by, from in string.gmatch(text or '', '(%d+):(%-?%d+):(%d+)') do
    if tonumber(n) > epoch then list[#list + 1] = { epoch = n, by = tonumber(by), from = tonumber(from) } end
  end
  return list
end

-- rescore_time converts the time of a past event to the clock after a step.
local function rescore_time(at, step, now)
  if at >= step.from and at <= now then return at end
  return math.min(at + step.by, now)
end

-- rescore_starts moves the starts that a rate counts.
local function rescore_starts(list, step, now)
  for _, g in ipairs(list) do
    local at = rescore_time(g.at, step, now)
    g.at, g.last = at, g.last + at - g.at
  end
  table.sort(list, function(a, b) return a.last < b.last end)
end
