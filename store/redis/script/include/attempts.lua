-- keep_newest removes the oldest lines of a job's attempts beyond 20 of the last line's sort: counted attempts (k is attempt or lost)
-- are one, all other entries the other.
local function keep_newest(text)
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

-- note adds a line to a job's attempts. record writes what was noted. unnote drops the last note if it is of a job that is deleted
-- at once.
local noted = {}
local function note(r, member, line)
  local text = line
  if flagged(r, 't') then
    text = (call('HGET', ATTEMPTS, member) or '') .. line
    local _, count = string.gsub(text, '\n', '\n')
    if count > 20 then text = keep_newest(text) end
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
  many('HSET', ATTEMPTS, noted)
  noted = {}
end
