-- A run is a line: lease flags size state finished reason due first_due version generation attempts failed lost. The lease is
-- token@queue, or - without one; flags are letters (m cancel requested, p its id has a fingerprint, t it has attempts, r and o that
-- its claim was under a rate or a probe, 0 none); state is - or d (delivered), x (dead), c (cancelled); finished is when it ended,
-- of a claimed job when it was claimed. The answer to the last attempt (its status, or its error class) and more fields may follow.
-- parse_run leaves numbers as text: Lua turns them into numbers where it calculates, and only comparing needs tonumber. It leaves
-- due first_due version generation, which an attempt mostly does not change, in one string, the schedule: each string costs time,
-- and a settlement parses a run per job. reschedule replaces the due time of a schedule. split_schedule and join_schedule are for
-- other changes. The fields go into r if it is given.
local function parse_run(s, r)
  local lease, flags, size, state, finished, reason, schedule, attempts, failed, lost, rest = match(s,
    '^(%S+) (%S+) (%d+) (%S) (%d+) (%S+) (%d+ %d+ %d+ %d+) (%d+) (%d+) (%d+)(.*)$')
  r = r or {}
  r.lease, r.flags, r.size, r.state, r.finished, r.reason, r.schedule = lease, flags, size, state, finished, reason, schedule
  r.attempts, r.failed, r.lost, r.rest, r.text = attempts, failed, lost, rest, nil
  return r
end
local function format_run(r)
  return r.lease .. ' ' .. r.flags .. ' ' .. r.size .. ' ' .. r.state .. ' ' .. r.finished .. ' ' .. r.reason .. ' ' ..
    r.schedule .. ' ' .. r.attempts .. ' ' .. r.failed .. ' ' .. r.lost .. r.rest
end
local function split_schedule(schedule) return match(schedule, '^(%d+) (%d+) (%d+) (%d+)$') end
local function join_schedule(due, first_due, version, generation)
  return int(due) .. ' ' .. int(first_due) .. ' ' .. version .. ' ' .. generation
end
local function reschedule(schedule, due) return int(due) .. match(schedule, ' .*') end
local function has_flag(r, letter) return r.flags ~= '0' and find(r.flags, letter, 1, true) ~= nil end
local function set_flag(r, letter) if not has_flag(r, letter) then r.flags = r.flags .. letter end end
local function clear_flag(r, letter) if has_flag(r, letter) then r.flags = (string.gsub(r.flags, letter, '')) end end
-- default_run returns the run of a job that was never claimed, edited or ended.
local function default_run(rec)
  local due = decode_number(rec, 13, 18)
  return { lease = '-', flags = byte(rec, 2) % 2 == 1 and '0p' or '0', size = #rec, state = '-', finished = '0',
    reason = '-', schedule = join_schedule(due, due, 1, 0), attempts = '0', failed = '0', lost = '0', rest = '' }
end
