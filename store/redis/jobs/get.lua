-- Reads a job with its record. Changes nothing.
-- KEYS    those of keys.lua
-- ARGV    member
-- result  now, record ('' none), run, attempts, the call's stored reply ('' none), name of the queue of the
--         record, or of that in the reply
local member, reply = ARGV[A + 1], call('GET', REPLY) or ''
local rec = call('HGET', JOBS, member)
return { int(now), rec or '', call('HGET', RUNS, member) or '', call('HGET', ATTEMPTS, member) or '', reply,
  queue_name(rec or string.match(reply, '^[^!\n][^\n]*\n(.*)$')) }
