-- entry_sort returns the sort of a line of a job's history: a for attempts that count, r for releases, e for events. An attempt begins
-- with its number, then its kind if it is lost or released. An event begins with its kind.
local function entry_sort(line)
  if sub(line, 1, 5) ~= '{"n":' then return 'e' end
  return match(line, '^{"n":%d+,"k":"(%a+)"') == 'released' and 'r' or 'a'
end
-- keep_newest removes the oldest lines of a job's history beyond 20 of the last line's sort.
local function keep_newest(text)
  local lines, counts, sort = {}, { a = 0, r = 0, e = 0 }, 'a'
  for line in string.gmatch(text, '[^\n]*\n') do
    sort = entry_sort(line)
    counts[sort] = counts[sort] + 1
    lines[#lines + 1] = { line, sort }
  end
  for i, line in ipairs(lines) do
    if counts[sort] <= 20 then break end
    if line[2] == sort then
      lines[i], counts[sort] = false, counts[sort] - 1
    end
  end
  local kept = {}
  for _, line in ipairs(lines) do
    if line then kept[#kept + 1] = line[1] end
  end
  return table.concat(kept)
end

-- add_attempt adds a line to a job's history, which write_attempts writes. drop_attempt drops the last line if it is of a job that is
-- deleted at once.
local added = {}
local function add_attempt(r, member, line)
  local text = line
  if has_flag(r, 't') then
    text = (call('HGET', ATTEMPTS, member) or '') .. line
    local _, count = string.gsub(text, '\n', '\n')
    if count > 20 then text = keep_newest(text) end
  else
    r.flags = r.flags .. 't'
  end
  local n = #added
  added[n + 1], added[n + 2], r.text = member, text, text
end
local function drop_attempt(member)
  local n = #added
  if added[n - 1] == member then added[n - 1], added[n] = nil, nil end
end
local function write_attempts()
  call_in_chunks('HSET', ATTEMPTS, added)
  added = {}
end
