-- Reads a job with its record. Changes nothing.
-- KEYS    those of keys.lua
-- ARGV    member
-- result  now, record ('' none), run, attempts, what the call's memory holds ('' nothing), name of the queue of the
--         record, or of that in the memory
local member, memory = ARGV[A + 1], call('GET', REPLY) or ''
local rec = call('HGET', JOBS, member)
return { int(now), rec or '', call('HGET', RUNS, member) or '', call('HGET', TRIES, member) or '', memory,
  named(rec or string.match(memory, '^[^!\n][^\n]*\n(.*)$')) }
