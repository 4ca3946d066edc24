-- A job's record, which Go writes and reads (record.go). Its head: 1 form, 2 flags, 3-6 queue number, 7-9 timeout in ms,
-- 10-12 length of the body, 13-18 first due time in ms; then the body, then tagged fields.
--
-- decode_number reads a big endian number of 3, 4 or 6 bytes.
local function decode_number(s, from, to)
  local a, b, c, d, e, f = byte(s, from, to)
  local n = (a * 256 + b) * 256 + c
  if d then n = n * 256 + d end
  if f then n = (n * 256 + e) * 256 + f end
  return n
end
-- queue_number returns the number of a record's queue, as text; body_size the length of its body.
local function queue_number(rec) return int(decode_number(rec, 3, 6)) end
local function body_size(rec) return decode_number(rec, 10, 12) end
local function without_body(rec) return sub(rec, 1, 18) .. sub(rec, 19 + body_size(rec)) end

-- encode_number is the inverse of decode_number, for any width.
local function encode_number(n, width)
  local s = ''
  for _ = 1, width do
    s = string.char(n % 256) .. s
    n = floor(n / 256)
  end
  return s
end

-- encode_field encodes a field with a number in as few bytes as it takes; '' for 0.
local function encode_field(tag, n)
  if n == 0 then return '' end
  local width = 1
  while n >= 256 ^ width do width = width + 1 end
  return string.char(tag, width) .. encode_number(n, width)
end

-- parse_time parses an argument for a time in ms: '@<ms>' is a time, a number is a wait from base.
local function parse_time(text, base)
  if sub(text, 1, 1) == '@' then return tonumber(sub(text, 2)) end
  local wait = tonumber(text)
  return wait > 0 and base + wait or now
end
-- encode_expiry encodes the field for an expiry; '' for none.
local function encode_expiry(text, base)
  if text == '' then return '' end
  return string.char(TAG_EXPIRY, 6) .. encode_number(parse_time(text, base), 6)
end

-- ttl_end returns when a job's time to live ends: at its expiry or after its topic's max_age, whichever is earlier; nil for never.
-- It is the score in ttl. expires is nil and age 0 if there is none.
local function ttl_end(expires, since, age)
  if age > 0 and (not expires or since + age < expires) then return since + age end
  return expires
end
-- read_numbers returns the numbers of a record's own fields, by tag.
local function read_numbers(rec)
  local i, numbers = 19 + body_size(rec), {}
  while i <= #rec do
    local tag, size, shift, from = byte(rec, i), 0, 1, i + 1
    repeat
      local b = byte(rec, from)
      if not b then return numbers end
      size, shift, from = size + b % 128 * shift, shift * 128, from + 1
    until b < 128
    if tag >= TAG_CREATED and size <= 8 and from + size - 1 <= #rec then
      local n = 0
      for j = from, from + size - 1 do n = n * 256 + byte(rec, j) end
      numbers[tag] = n
    end
    i = from + size
  end
  return numbers
end
-- read_lifetime returns a record's expiry (nil: none), and its topic's max_age at registration in ms (0: none).
local function read_lifetime(rec)
  local numbers = read_numbers(rec)
  return numbers[TAG_EXPIRY], numbers[TAG_MAX_AGE] or 0
end
