-- Reads the keys of ended jobs of several sets in the order of a list. Changes nothing.
-- KEYS    done, dead or cancelled of topics
-- ARGV    those of order.lua, 6 most
-- result  {keys of jobs and their ends}, {positions among KEYS of the sets that have more}
local most = tonumber(ARGV[6])
local at, heap = tonumber(ARGV[4]), {}

-- advance goes on to the next job of a set; false: there is none.
local function advance(set)
  set.i = set.i + 2
  if not set.found[set.i] then
    if not set.more then return false end
    set.found, set.more = read_from(set.key, set.index, set.size)
    set.index, set.size, set.i = set.index + set.size, math.min(2 * set.size, most + 1), 1
    if not set.found[1] then return false end
  end
  set.member, set.at = set.found[set.i], tonumber(set.found[set.i + 1])
  return true
end

local function is_first(a, b)
  if a.at ~= b.at then return (a.at < b.at) ~= newest end
  return comes_before(a.member, b.member)
end

-- sink restores the heap after its first set has changed.
local function sink()
  local i, n, set = 1, #heap, heap[1]
  while 2 * i <= n do
    local child = 2 * i
    if child < n and is_first(heap[child + 1], heap[child]) then child = child + 1 end
    if not is_first(heap[child], set) then break end
    heap[i], i = heap[child], child
  end
  heap[i] = set
end

local size = math.min(most + 1, 2 + floor(2 * most / #KEYS))
for i, key in ipairs(KEYS) do
  local set = { n = i, key = key, index = find_start(key, at, ARGV[5]), size = size, found = {}, i = 1, more = true }
  if advance(set) then heap[#heap + 1] = set end
end
table.sort(heap, is_first)

local found, left = {}, {}
while #heap > 0 and #found < 2 * most do
  local set, n = heap[1], #found
  found[n + 1], found[n + 2] = set.member, set.found[set.i + 1]
  if not advance(set) then
    heap[1] = heap[#heap]
    heap[#heap] = nil
  end
  if #heap > 1 then sink() end
end
for i, set in ipairs(heap) do left[i] = set.n end
return { found, left }
