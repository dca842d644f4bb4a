-- GCRA and LeakyBucket where N is data: how full the bucket was at the newest time of its record, in whole costs
-- and span parts of one, and the N of what was charged last, by which it drains. It holds twice the most that any
-- event may use. n is that of the event, and top the largest.
local function holds(s) return 2 * max(s.top, s.most) end

-- full returns how full the bucket is at t.
local function full(s, t)
  local time = t - s.at
  if time <= 0 or s.whole == 0 and s.part == 0 then return s.whole, s.part end
  if time / s.span * s.rate > s.whole + 2 then return 0, 0 end
  local whole, part = muldiv(time, s.rate, s.span)
  whole, part = s.whole - whole, s.part - part
  if part < 0 then whole, part = whole - 1, part + s.span end
  if whole < 0 then return 0, 0 end
  return whole, part
end

local variable = {
  load = function(s, body, newest)
    s.whole, s.part, s.rate, s.at = 0, 0, s.n, newest or 0
    if body ~= '' then s.whole, s.part, s.rate = unpack_('>I5I7I4', body) end
  end,
  advance = function(s, t)
    s.whole, s.part = full(s, t)
    s.at = max(s.at, t)
  end,
  used = function(s, t)
    local whole, part = full(s, t)
    return part > 0 and whole + 1 or whole
  end,
  charge = function(s, t, cost)
    local whole, part = full(s, t)
    whole = whole + cost
    if whole >= holds(s) then whole, part = holds(s), 0 end
    s.whole, s.part, s.at = whole, part, t
  end,
  -- drainBy makes n that by which the bucket drains.
  drainBy = function(s) s.rate = s.n end,
  till = function(s, t, most)
    local whole, part = full(s, t)
    whole = whole - most
    if whole < 0 or whole == 0 and part == 0 then return t end
    if whole * s.span / s.rate > LONGEST then return t + LONGEST end
    local time, rest = muldiv(whole, s.span, s.rate)
    return t + time + ceil((rest + part) / s.rate)
  end,
  save = function(s)
    if s.whole == 0 and s.part == 0 then return '' end
    return pack('>I5I7I4', s.whole, s.part, s.rate)
  end,
  cut = function(s, t) return full(s, t) >= holds(s) end,
}
variable.ends = function(s, t) return variable.till(s, t, 0) end
variable.delay = function(s, t) return variable.till(s, t, 1) - t end
windows[8], windows[9] = variable, variable
