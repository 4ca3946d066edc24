-- Reads a job with its record. Changes nothing.
-- KEYS    those of lib
-- ARGV    member
-- result  now, record ('' none), run, attempts, what the call's memory holds ('' nothing)
local member = ARGV[A + 1]
return { int(now), call('HGET', JOBS, member) or '', call('HGET', RUNS, member) or '',
  call('HGET', TRIES, member) or '', call('GET', TOK) or '' }
