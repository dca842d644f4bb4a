-- A record is what a key of Redis holds: the limits of one rule and subject.
--   head | newest time 7 | number of times it was reset 2, with CUT if a bucket was cut, and
--   BANNED | counts of each limit, behind their length 3 except the last | BAN if BANNED
-- The head describes the limits, so that another version of a rule finds out, and carries what is counted:
--   form 1 | number of limits 1 | each limit, see readLimits
-- It is that of the rule, which the caller sends, or no limits are in it. The last of the limits of a
-- rule with a ban is the log of what the ban counts.
--
-- Forms are multiples of 17, so that no change of one bit makes one of another.
--
-- Only the script that can do all checks records: others fail where they cannot read one, or believe what follows from it,
-- and have changed nothing then. A damaged record is deleted, and the call fails.
local CUT, BANNED, FORMS = 32768, 16384, 17

-- BAN is the newest ban of a key: whether a rule began it 1 | end 7 | start 7 | number of
-- bans so far 4 | how long it is remembered after its end 7 | part of the jitter 4. In a record, a checksum 2 follows.
local BAN, BAN_BYTES = '>BI7I7I4I7I4', 32

-- banSum returns the checksum of a ban, and of other numbers behind it: a ban may be longer than anything that is
-- counted, so no other check finds a changed end. No change of one bit leaves it as it is.
local function banSum(b, others)
  return (b.ends % 65521 + b.since + b.count + b.byRule + others) % 65521
end

local function limitOf(a, n, span, most)
  local s = {a = a, n = n, span = span, most = most}
  if n == 0 then a = NOTHING elseif a == SLIDING and n > 128 then a = SLOTS end
  s.window = windows[a]
  return s
end

-- readRule returns a record of a rule, as a caller sends it, without counts.
local function readRule(key, rule)
  local flags, keep, n, i = unpack_('>BI7B', rule)
  local r = {key = key, shadow = flags % 2 == 1, countRefused = flags % 4 >= 2, keep = keep, newest = 0, resets = 0, all = {}}
  for j = 1, n do
    local a, n, span, most
    a, n, span, most, i = unpack_('>BI4I7I4', rule, i)
    local s = limitOf(a, n, span, most)
    s.body = ''
    if a == VARIABLE or a == VARIABLE_QUEUE then s.top, i = unpack_('>I4', rule, i) end
    if a == CALENDAR then s.p0, s.p1, s.p2, i = unpack_('>I7I7I7', rule, i) end
    r.all[j] = s
    if a < HITS then r[j] = s else r.strikes = s end
  end
  if r.strikes then i = bans.read(r, rule, i) end
  r.head = sub(rule, i)
  return r
end

-- readRecord reads v, which Redis has of r. It returns where what is counted begins, or false if only repair can read that.
local function readRecord(r, v)
  r.found = true
  local limits, i = r.all, #r.head + 1
  if sub(v, 1, i - 1) ~= r.head then
    if readLimits then
      limits, i = readLimits(v)
    elseif byte(v, 2) == 0 then
      limits, i = {}, 3
    else
      return false
    end
    r.stored = limits
  end
  local from, flags = i, nil
  r.newest, flags, i = unpack_('>I7I2', v, i)
  r.cut, r.resets = flags >= CUT, flags % BANNED
  local last = #v
  if flags % CUT >= BANNED then
    if not bans then return false end
    local b, sum = {}, nil
    last = last - BAN_BYTES
    b.byRule, b.ends, b.since, b.count, b.remember, b.part, sum = unpack_(BAN .. 'I2', v, last + 1)
    assert(sum == banSum(b, r.newest + b.remember + b.part))
    r.ban = b
  end
  for j = 1, #limits do
    local to = last
    if j < #limits then
      to, i = unpack_('>I3', v, i)
      to = i + to - 1
    end
    limits[j].body, i = sub(v, i, to), to + 1
  end
  return from
end

-- recordOf returns a record with that head.
local function recordOf(r, head, limits, b, newest)
  local parts = {}
  for j = 1, #limits do
    local body = limits[j].window.save(limits[j])
    if j < #limits then body = pack('>I3', #body) .. body end
    parts[j] = body
  end
  if b then parts[#parts + 1] = pack(BAN .. 'I2', b.byRule, b.ends, b.since, b.count, b.remember, b.part, banSum(b, newest + b.remember + b.part)) end
  return head .. pack('>I7I2', newest, r.resets + (r.cut and CUT or 0) + (b and BANNED or 0)) .. table.concat(parts)
end

-- openAll reads the records of so many keys behind the first ones, and sets now to the time to judge at: the
-- newest of them, unless the clock was set back since. It returns nil and an answer
-- for the caller if this script cannot judge them.
local function openAll(first, count)
  local records, newest, whole = {}, now, true
  for i = 1, count do
    local r = readRule(KEYS[first + i], ARGV[1 + i])
    records[i] = r
    local v = redis.call('GET', r.key)
    if v then
      local form = byte(v) or 0
      if form > byte(r.head) and form % FORMS == 0 then error('NEWERFORM a record of form ' .. form / FORMS) end
      if not check then
        whole = readRecord(r, v) and whole
      elseif not pcall(check, r, v) then
        redis.call('DEL', r.key)
        error('DAMAGED ' .. r.key)
      end
    end
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
        s.window.load(s, s.body, r.newest)
        s.window.advance(s, now)
      end
    end
  end
  return records
end

-- save writes a record with the time after which it holds nothing.
local function save(r)
  if r.held then
    r.held.ban = r.ban
    r = r.held
  end
  local ends, b = now, r.ban
  for j = 1, #r.all do ends = max(ends, r.all[j].window.ends(r.all[j], now)) end
  if not check then ends = min(ends, now + r.keep) end
  if r.resets > 0 then ends = max(ends, now + r.keep) end
  if b and b.ends + b.remember < now then b = nil end
  if b then ends = max(ends, b.ends + b.remember + 1) end
  if ends <= now then
    if r.found then redis.call('DEL', r.key) end
    return
  end
  redis.call('SET', r.key, recordOf(r, r.head, r.all, b, now), 'PX', ceil((ends - now) / 1000) + 1)
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
  if r.held then charge(r.held, cost) end
end
