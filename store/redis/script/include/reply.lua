-- replayed answers a call on one job as its first sending was answered; nil when there was none. The job may have gone
-- on, or be gone, since.
local function replayed(member)
  local again = call('GET', REPLY)
  if not again then return nil end
  local code, run = match(again, '^!(%S+) ?(.*)$')
  if code then return { code, int(now), call('HGET', JOBS, member) or '', run } end
  local line, rec = match(again, '^([^\n]*)\n?(.*)$')
  if rec == '' then rec = call('HGET', JOBS, member) or '' end
  return { rec == '' and 'none' or 'ok', int(now), rec, line }
end

-- refuse answers a call on one job with a refusal, and remembers it.
local function refuse(member, code, run)
  call('SET', REPLY, '!' .. code .. ' ' .. (run or ''), 'EX', REPLY_TTL)
  return { code, int(now), call('HGET', JOBS, member) or '', run or '' }
end
