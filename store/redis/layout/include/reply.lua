-- stored_reply returns the reply of the first call if this call on one job is a repeat, else nil. The job may have changed or been
-- deleted since.
local function stored_reply(member)
  local again = call('GET', REPLY)
  if not again then return nil end
  local code, run = match(again, '^!(%S+) ?(.*)$')
  if code then return { code, int(now), call('HGET', JOBS, member) or '', run } end
  local line, rec = match(again, '^([^\n]*)\n?(.*)$')
  if rec == '' then rec = call('HGET', JOBS, member) or '' end
  return { rec == '' and 'none' or 'ok', int(now), rec, line }
end

-- refuse returns a refusal of a call on one job, and stores it for repeats.
local function refuse(member, code, run)
  call('SET', REPLY, '!' .. code .. ' ' .. (run or ''), 'EX', REPLY_TTL)
  return { code, int(now), call('HGET', JOBS, member) or '', run or '' }
end
