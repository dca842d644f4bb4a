-- A slot k holds the microseconds from start(s, k) to last(s, k). Slots are a 60th of
-- the span, or a 64th where 60 does not divide it; a 64th may be so many eighths of
-- a microsecond.
local function setWidth(s)
  if s.span % 3000 == 0 then
    s.width, s.eighths = s.span / 60, false
  else
    s.width, s.eighths = s.span / 8, true
  end
end

local function number(s, t)
  local w = s.width
  local k = floor(t / w)
  if not s.eighths then return k end
  return k * 8 + floor((t - k * w) * 8 / w)
end

local function start(s, k)
  if not s.eighths then return k * s.width end
  local eight = floor(k / 8)
  return eight * s.width + ceil((k - eight * 8) * s.width / 8)
end

local function last(s, k) return start(s, k + 1) - 1 end

-- weigh returns the part of count, which is slot k's, that is in the window that ends
-- at t, rounded up.
local function weigh(s, count, k, t)
  local first, from, to = t - s.span + 1, start(s, k), last(s, k)
  if count == 0 or first > to then return 0 end
  if first <= from then return count end
  local q, r = muldiv(count, to - first + 1, to - from + 1)
  if r > 0 then q = q + 1 end
  return q
end

-- dropsAt returns when weigh is most or less, which is less than count.
local function dropsAt(s, count, k, most)
  local from, to = start(s, k), last(s, k)
  local left = muldiv(most, to - from + 1, count)
  return to - left + s.span
end
