-- parse_permits returns the starts that a topic's rate counts. They are stored with the epoch of the clock in which they were
-- written, '…@epoch'. clocked is the fields epoch and steps of clock: later steps move the starts. text is false if none is stored.
local function parse_permits(text, clocked)
  if not text then return {} end
  local list = parse_groups(text)
  if clocked[1] then
    for _, step in ipairs(steps_after(clocked[2], tonumber(match(text, '@(%d+)$') or 0))) do rescore_starts(list, step, now) end
  end
  return list
end
