-- The level of GCRA and LeakyBucket: when the bucket will be empty, in microseconds and
-- the rest in 1/n of one. It holds at most its burst, and as much or n beyond it.
local function takes(s, cost) return muldiv(cost, s.span, s.n) end

-- highest returns the level that is never exceeded, as a time to drain.
local function highest(s) return takes(s, s.most + max(s.most, s.n)) end

-- emptyAt returns when the bucket is empty, t if it is.
local function emptyAt(s, t)
  if s.at < t then return t, 0 end
  return s.at, s.rest
end

-- drains returns how much drains in a time and rest/n of a microsecond, rounded up or
-- down.
local function drains(s, time, rest, up)
  local q, r = muldiv(time, s.n, s.span)
  r = r + rest
  local more = floor(r / s.span)
  if up and r > more * s.span then more = more + 1 end
  return q + more
end

-- before returns the time before at and rest by as long as cost takes to drain, rounded up.
local function before(s, at, rest, cost)
  local time, more = takes(s, cost)
  if rest > more then at = at + 1 end
  return at - time
end

-- levelFormat has as many bytes for the rest as n needs.
local function levelFormat(s) return s.n <= 65536 and '>I7I2' or '>I7I4' end

local level = {
  load = function(s, body)
    s.at, s.rest = 0, 0
    if body ~= '' then s.at, s.rest = unpack_(levelFormat(s), body) end
  end,
  advance = function() end,
  used = function(s, t)
    if s.at < t then return 0 end
    return drains(s, s.at - t, s.rest, true)
  end,
  charge = function(s, t, cost)
    local at, rest = emptyAt(s, t)
    local time, more = highest(s)
    local top, topRest = t + time, more
    if cost > s.most + max(s.most, s.n) then
      s.at, s.rest = top, topRest
      return
    end
    time, more = takes(s, cost)
    at, rest = at + time, rest + more
    if rest >= s.n then at, rest = at + 1, rest - s.n end
    if at > top or at == top and rest > topRest then at, rest = top, topRest end
    s.at, s.rest = at, rest
  end,
  till = function(s, t, most)
    local at, rest = emptyAt(s, t)
    return before(s, at, rest, most)
  end,
  ends = function(s, t)
    local at, rest = emptyAt(s, t)
    if rest > 0 then at = at + 1 end
    return at
  end,
  save = function(s)
    if s.at == 0 then return '' end
    return pack(levelFormat(s), s.at, s.rest)
  end,
  -- cut reports whether the bucket is as full as it gets, so that a part of a charge
  -- may not have been counted.
  cut = function(s, t)
    local time, rest = highest(s)
    return s.at - t > time or s.at - t == time and s.rest >= rest
  end,
  -- delay returns how long the event charged last waits for its turn.
  delay = function(s, t)
    local at, rest = emptyAt(s, t)
    return max(before(s, at, rest, 1) - t, 0)
  end,
}
windows[3], windows[4] = level, level
