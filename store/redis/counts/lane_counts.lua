-- Counts the jobs of queues that are due and not in a ready list, and finds the first due moment of all jobs without a lease. Changes
-- nothing.
-- KEYS    1 stats:<topic>  2 jobs  3 runs, then due:<q> and ready:<q> of each queue
-- ARGV    1 the first due moment is wanted (1, else 0)
-- result  {counters and values}, the first due moment that was found (0 none), {jobs at the head of a ready list whose moment is to be read
--         from their record}, then for each queue: how many
local first, heads, unread = NEVER, {}, {}
local result = { call('HGETALL', KEYS[1]), '0', unread }
for i = 4, #KEYS, 2 do
  local due = tonumber(call('ZRANGE', KEYS[i], 0, 0, 'WITHSCORES')[2] or NEVER)
  if due < first then first = due end
  result[#result + 1] = due <= now and call('ZCOUNT', KEYS[i], '-inf', NOW) or 0
  if ARGV[1] == '1' then heads[#heads + 1] = call('LRANGE', KEYS[i + 1], 0, 0)[1] end
end
-- The head of a ready list is due before the others. A job that was never claimed or edited has no run: its record has the moment, and
-- is read elsewhere if the body is not short.
if #heads > 0 then
  local runs = call('HMGET', KEYS[3], unpack(heads))
  for i, head in ipairs(heads) do
    local due
    if runs[i] then
      due = tonumber(match(runs[i], '^%S+ %S+ %S+ %S+ %S+ %S+ (%d+)'))
    elseif call('HSTRLEN', KEYS[2], head) <= 2048 then
      local rec = call('HGET', KEYS[2], head)
      due = rec and #rec >= 18 and decode_number(rec, 13, 18)
    end
    if not due then
      unread[#unread + 1] = head
    elseif due < first then
      first = due
    end
  end
end
if first < NEVER then result[2] = int(first) end
return result
