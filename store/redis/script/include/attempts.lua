-- crowded takes the oldest line out of a record that has more than 20 of the last line's sort: counted attempts (k is attempt
-- or lost) are one, everything else is the other.
local function crowded(text)
  local lines, counts, sort = {}, { [true] = 0, [false] = 0 }, false
  for line in string.gmatch(text, '[^\n]*\n') do
    local k = match(line, '"k":"(%a+)"')
    sort = k == 'attempt' or k == 'lost'
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

-- note adds a line, with its end, to a job's record and keeps the newest 20 of its sort; record writes what was noted,
-- and unnote leaves out what was noted last, when that is a job's that goes at once.
local noted = {}
local function note(r, member, line)
  local text = line
  if flagged(r, 't') then
    text = (call('HGET', TRIES, member) or '') .. line
    local _, count = string.gsub(text, '\n', '\n')
    if count > 20 then text = crowded(text) end
  else
    r.flags = r.flags .. 't'
  end
  local n = #noted
  noted[n + 1], noted[n + 2], r.text = member, text, text
end
local function unnote(member)
  local n = #noted
  if noted[n - 1] == member then noted[n - 1], noted[n] = nil, nil end
end
local function record()
  many('HSET', TRIES, noted)
  noted = {}
end
