-- check reads v, which Redis has of r. It fails if no script has written that, or the counts of a limit cannot be what it says:
-- times in order, and none later than the record, which last no longer than the limit can.
check = function(r, v)
  local from = readRecord(r, v)
  local limits = r.stored or r.all
  for j = 1, #limits do
    local s = limits[j]
    s.window.load(s, s.body, r.newest)
    if s.window.ordered then
      assert(s.window.ordered(s, r.newest))
    else
      local times, counts = s.window.each(s, r.newest)
      local sum, latest = 0, 0
      for i = 1, #times do
        assert(latest <= times[i] and times[i] <= r.newest)
        sum, latest = sum + counts[i], times[i]
      end
      assert(s.a == TWO_BUCKET or sum == s.window.used(s, r.newest))
    end
    local units = max(s.n, s.most, s.top or 0, 1) / (s.top and 1 or max(s.n, 1)) -- of a bucket, which drains n in a span
    assert(s.window.ends(s, r.newest) - r.newest <= 2 * units * s.span + 2) -- it is rounded up, and units is a double
  end
  assert(v == recordOf(r, sub(v, 1, from - 1), limits, r.ban, r.newest))
end

-- loadAt loads limits as they were at the newest time of their record. If the clock was
-- set back since, what is later than now is moved to now.
local function loadAt(newest, limits)
  for j = 1, #limits do
    local s = limits[j]
    s.window.load(s, s.body, newest)
    s.window.advance(s, newest)
    if newest > now then s.window.clamp(s, now, newest) end
  end
end

-- sameLimit reports whether the heads of records describe both in the same words. What an event brings is not in them.
local function sameLimit(s, o) return s.text == o.text end

-- heir returns the limit of old from which s takes its counts over: the same limit, else
-- that with the shortest span that is no shorter, else the longest. What a ban counts, and
-- what is under way, is taken over from the like only.
local function heir(s, old)
  local best
  for j = 1, #old do
    local o = old[j]
    if sameLimit(s, o) then return o end
    if o.a == s.a or o.a ~= IN_FLIGHT and s.a ~= IN_FLIGHT and max(o.a, s.a) < HITS then
      local better = not best
      if best and (o.span >= s.span) ~= (best.span >= s.span) then
        better = o.span >= s.span
      elseif best then
        better = o.span >= s.span and o.span < best.span or o.span < s.span and o.span > best.span
      end
      if better then best = o end
    end
  end
  return best
end

-- carry counts in s what o held at a time. Times stay, even if they are more than n: the
-- limit may be raised again. A window of Fixed keeps its beginning.
local function carry(s, o, t)
  if sameLimit(s, o) then
    s.window.load(s, o.window.save(o), t)
    return
  end
  if s.a == FIXED and o.a == FIXED and s.n > 0 and o.n > 0 then
    s.first, s.over, s.count = o.first, o.first + s.span, o.count
    return
  end
  if s.window == log and o.window == log then
    s.times, s.count, s.lost = o.times, o.count, o.lost
    return
  end
  local times, counts = o.window.each(o, t)
  for i = 1, #times do
    s.window.advance(s, times[i])
    s.window.charge(s, times[i], counts[i])
  end
end

-- readLimits returns the limits that the head of a record describes, and where that ends. Each is:
--   algorithm, 16 times the unit of the span (0 for microseconds, 1 for ms, 2 for s), and 64 if there is
--   a burst 1 | span | N | burst | of a calendar, a checksum of its zone 4
-- Numbers have the low seven bits first, and 128 in each byte but the last.
readLimits = function(v)
  local all, i = {}, 3
  local function varint()
    local n, scale = 0, 1
    while byte(v, i) >= 128 do
      n, scale, i = n + (byte(v, i) - 128) * scale, scale * 128, i + 1
    end
    i = i + 1
    return n + byte(v, i - 1) * scale
  end
  for j = 1, byte(v, 2) do
    local from, code = i, byte(v, i)
    i = i + 1
    local span, n = varint() * 1000 ^ (floor(code / 16) % 4), varint()
    local s = limitOf(code % 16, n, span, code >= 64 and varint() or n)
    assert(s.a < SLOTS and s.span <= LONGEST)
    if s.a == VARIABLE or s.a == VARIABLE_QUEUE then s.top = n end
    if s.a == CALENDAR then i = i + 4 end
    s.text = sub(v, from, i - 1)
    all[j] = s
  end
  return all, i
end

-- hold has r written with the limits that Redis has, which hold more than those of the rule can: all that this call
-- counts is counted in these, too. What a ban counts is that of the rule, if it has one.
local function hold(r, old)
  local h = {key = r.key, keep = r.keep, newest = r.newest, resets = r.resets, cut = r.cut, found = true, all = {}}
  local head = {}
  for j = 1, #old do
    local s = old[j]
    if s.a < HITS then
      s.window.advance(s, now)
      h[#h + 1] = s
    elseif not r.strikes then
      h.strikes = s
    end
    if s.a < HITS or not r.strikes then
      h.all[#h.all + 1], head[#head + 1] = s, s.text
    end
  end
  if r.strikes then
    h.strikes, h.all[#h.all + 1], head[#head + 1] = r.strikes, r.strikes, r.strikes.text
  end
  h.head = sub(r.head, 1, 1) .. string.char(#head) .. table.concat(head)
  r.held = h
end

-- repair loads the limits of a record, with the counts of other limits that it has.
repair = function(r)
  r.changed = r.newest > now -- or the next call would move it again, to a later time
  if r.changed and r.ban then
    local back = r.newest - now -- to 1970 or later, where the clock of a machine without a battery begins
    r.ban.ends, r.ban.since = max(r.ban.ends - back, 0), max(r.ban.since - back, 0)
  end
  if not r.stored then
    loadAt(r.newest, r.all)
    for j = 1, #r.all do r.all[j].window.advance(r.all[j], now) end
    return
  end
  local old, own = r.stored, readLimits(r.head)
  for j = 1, #r.all do r.all[j].text = own[j].text end
  loadAt(r.newest, old)
  local limits = #r
  for j = 1, #old do
    if old[j].a < HITS then limits = limits - 1 end
  end
  local same, whole = limits == 0, true
  for j = 1, #r.all do
    local s = r.all[j]
    s.window.load(s, '')
    local o = heir(s, old)
    if o then
      local t = min(r.newest, now)
      carry(s, o, t)
      local used = s.window.used(s, t)
      if used >= s.most and used < o.window.used(o, t) then whole = false end
    end
    if s.a < HITS and not (o and (s.a == IN_FLIGHT or sameLimit(s, o))) then same = false end
    s.window.advance(s, now)
  end
  if not whole then hold(r, old) end
  -- What was charged before cannot be told from the rest, and is not given back.
  if not same then r.resets = r.resets % 4095 + 1 end
  -- A limit that cannot hold all refuses. The record keeps all: a node with another version of the rule, or the next
  -- version, may hold it.
  r.changed = r.changed or whole
end
