-- Starts that a rate counts, in a window that slides. They are groups {at, last, n}: n starts granted at a moment, which
-- may begin until last and leave the window per ms later. Groups are in the order in which they leave, as text
-- 'at:wait:n,…' with wait = last - at, '-' for none.
local function parse_groups(text)
  local list = {}
  for at, wait, n in string.gmatch(text, '(%d+):(%d+):(%d+)') do
    list[#list + 1] = { at = tonumber(at), last = at + wait, n = tonumber(n) }
  end
  return list
end

local function format_groups(list)
  local texts = {}
  for i, g in ipairs(list) do texts[i] = string.format('%.0f:%.0f:%.0f', g.at, g.last - g.at, g.n) end
  return #texts > 0 and table.concat(texts, ',') or '-'
end

-- count_window returns the groups that have not left the window, and the number of their starts.
local function count_window(list, per, now)
  local kept, n = {}, 0
  for _, g in ipairs(list) do
    if g.last + per > now then
      kept[#kept + 1] = g
      n = n + g.n
    end
  end
  return kept, n
end

-- next_start returns when a full window with n counted starts has room for another.
local function next_start(list, n, starts, per)
  local leave = n - starts + 1
  for _, g in ipairs(list) do
    leave = leave - g.n
    if leave <= 0 then return g.last + per end
  end
end
