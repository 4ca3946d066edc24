-- Withdraws the announcement of a reader of the tail.
-- KEYS    1 tail  2 tail_readers
-- ARGV    the reader
-- result  how many were withdrawn
return call('ZREM', KEYS[2], ARGV[1])
