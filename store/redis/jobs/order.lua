-- Sorted sets in the order of a list: by score, then by the bytes of the member, both descending if newest is set.
-- ARGV    1 newest ('1')  2 least score  3 greatest score ('' no bound)  4 score and 5 member to begin after ('' for the first; a score
--         without a member: before the members of that score)
local newest, low, high = ARGV[1] == '1', tonumber(ARGV[2]), tonumber(ARGV[3])

-- comes_before reports whether a member comes before another of the same score. It compares bytes, as sorted sets do: Lua compares text
-- by the server's locale.
local function comes_before(a, b)
  for i = 1, math.min(#a, #b) do
    local x, y = byte(a, i), byte(b, i)
    if x ~= y then return (x < y) ~= newest end
  end
  return #a ~= #b and (#a < #b) ~= newest
end

-- range reads members and scores of a sorted set by their indexes.
local function range(key, from, to)
  if newest then return call('ZRANGE', key, from, to, 'REV', 'WITHSCORES') end
  return call('ZRANGE', key, from, to, 'WITHSCORES')
end

-- find_start returns the index of the first member of a sorted set that is within the bounds and after a score and a member (nil: the
-- first within the bounds). The member may be gone: its place is found by halving.
local function find_start(key, at, member)
  local first = low
  if newest then first = high end
  if at and (not first or (at < first) == newest or at == first) then first = at else member = '' end
  if not first then return 0 end
  first = int(first)
  local from
  if newest then from = call('ZCOUNT', key, '(' .. first, '+inf') else from = call('ZCOUNT', key, '-inf', '(' .. first) end
  if member == '' then return from end
  local to = from + call('ZCOUNT', key, first, first)
  while from < to do
    local middle = floor((from + to) / 2)
    local found = range(key, middle, middle)[1]
    if found == member or comes_before(found, member) then from = middle + 1 else to = middle end
  end
  return from
end

-- read_from reads up to n members of a sorted set and their scores from an index on. It returns whether there may be more.
local function read_from(key, index, n)
  local found = range(key, index, index + n - 1)
  local more = #found == 2 * n
  for i = #found, 2, -2 do
    local score = tonumber(found[i])
    if (low and score < low) or (high and score > high) then
      found[i], found[i - 1], more = nil, nil, false
    else
      break
    end
  end
  return found, more
end
