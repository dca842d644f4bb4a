-- A record is what a key of Redis holds: the limits of one rule and subject.
--   version of the format 1 | newest time 7 | number of times it was reset 2, and in its
--   first bit whether a bucket was cut | number of limits 1
-- and of each limit
--   algorithm 1 | N 4 | span 7 | burst 4 | length of the body 3 | body
-- and, if the key was banned, BAN.
-- N and the rest are there so that another version of a rule finds out, and carries
-- what is counted. repair is nil in a script that cannot do that. The last of the limits
-- of a rule with a ban is the log of what the ban counts.
local CUT = 32768

-- BAN is the newest ban of a key: whether a rule began it 1 | end 7 | start 7 | number of
-- bans so far 4 | how long it is remembered after its end 7 | part of the jitter 4.
local BAN, BAN_BYTES = '>BI7I7I4I7I4', 30

local function readLimit(bytes, i)
  local a, n, span, most, next = unpack_('>BI4I7I4', bytes, i)
  local s = {a = a, n = n, span = span, most = most, shape = sub(bytes, i, next - 1)}
  if n == 0 then a = NOTHING elseif a == SLIDING and n > 128 then a = SLOTS end
  s.window = windows[a]
  return s, next
end

-- readRule returns a record of a rule, as a caller sends it, without counts.
local function readRule(key, rule)
  local flags, keep, n, i = unpack_('>BI7B', rule)
  local r = {key = key, shadow = flags % 2 == 1, countRefused = flags % 4 >= 2, keep = keep, newest = 0, resets = 0, all = {}}
  for j = 1, n do
    local s
    s, i = readLimit(rule, i)
    s.body = ''
    if s.a == CALENDAR then s.p0, s.p1, s.p2, i = unpack_('>I7I7I7', rule, i) end
    r.all[j] = s
    if s.a < HITS then r[j] = s else r.strikes = s end
  end
  if r.strikes and bans then bans.read(r, rule, i) end
  return r
end

-- readRecord reads what Redis has of r. It returns false if only repair can.
local function readRecord(r)
  local v = redis.call('GET', r.key)
  if not v then return true end
  r.found = true
  local version, newest, resets, n, i = unpack_('>BI7I2B', v)
  if version ~= 1 then error('NEWERFORM a record of version ' .. version .. ': must be 1') end
  r.newest, r.cut, r.resets = newest, resets >= CUT, resets % CUT
  local same = n == #r.all
  for j = 1, n do
    if same and sub(v, i, i + 15) ~= r.all[j].shape then same = false end
    local length, from = unpack_('>I3', v, i + 16)
    i = from + length
    if same then r.all[j].body = sub(v, from, i - 1) end
  end
  if not same then r.stored = v end
  if #v >= i then
    if not bans then return false end
    local b = {}
    b.byRule, b.ends, b.since, b.count, b.remember, b.part = unpack_(BAN, v, i)
    r.ban = b
  end
  return same or n == 0
end

-- openAll reads the records of so many keys behind the first ones, and sets now to the time to judge at: the
-- newest of them, unless the clock was set back since. It returns nil and an answer
-- for the caller if this script cannot judge them.
local function openAll(first, count)
  local records, newest, whole = {}, now, true
  for i = 1, count do
    local r = readRule(KEYS[first + i], ARGV[1 + i])
    records[i] = r
    whole = readRecord(r) and whole
    newest = max(newest, r.newest)
  end
  if newest - now > SLACK then
    if not repair then return nil, 'repair' end
  else
    now = newest
  end
  for i = 1, #records do
    local r = records[i]
    for j = 1, #r do
      if r[j].p0 and (now < r[j].p0 or now >= r[j].p2) then return nil, 'period' .. pack('>I7', now) end
    end
  end
  if not whole and not repair then return nil, 'repair' end
  for i = 1, #records do
    local r = records[i]
    if repair then
      repair(r)
    else
      for j = 1, #r.all do
        local s = r.all[j]
        s.window.load(s, s.body)
        s.window.advance(s, now)
      end
    end
  end
  return records
end

-- save writes a record with the time after which it holds nothing.
local function save(r)
  local parts, ends = {}, now
  for j = 1, #r.all do
    local s = r.all[j]
    local body = s.window.save(s)
    if body ~= '' then ends = max(ends, s.window.ends(s, now)) end
    parts[j] = s.shape .. pack('>I3', #body) .. body
  end
  if r.resets > 0 then ends = max(ends, now + r.keep) end
  local b, ban = r.ban, ''
  if b and b.ends + b.remember >= now then
    ends = max(ends, b.ends + b.remember + 1)
    ban = pack(BAN, b.byRule, b.ends, b.since, b.count, b.remember, b.part)
  end
  if ends <= now then
    if r.found then redis.call('DEL', r.key) end
    return
  end
  local head = pack('>BI7I2B', 1, now, r.resets + (r.cut and CUT or 0), #r.all)
  redis.call('SET', r.key, head .. table.concat(parts) .. ban, 'PX', ceil((ends - now) / 1000) + 1)
end

-- charge charges all limits of a record, and notes whether a bucket was cut.
local function charge(r, cost)
  if r.cut then
    r.cut = false
    for j = 1, #r do
      if r[j].window.used(r[j], now) > 0 then r.cut = true end
    end
  end
  for j = 1, #r do
    local s = r[j]
    s.window.charge(s, now, cost)
    if s.window.cut and s.window.cut(s, now) then r.cut = true end
  end
end
