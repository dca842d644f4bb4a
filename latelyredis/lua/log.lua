-- The log of Exact, InFlight and Sliding up to 128: the times of the last n events, 7
-- bytes each, behind a byte that says whether one that may still count was dropped.
local function timeAt(s, i)
  return (unpack_('>I7', s.times, i * 7 + 1))
end

-- after returns how many times are t or earlier.
local function after(s, t)
  local low, high = 0, s.count
  while low < high do
    local middle = floor((low + high) / 2)
    if timeAt(s, middle) <= t then low = middle + 1 else high = middle end
  end
  return low
end

local function dropOldest(s, n)
  s.times, s.count = sub(s.times, n * 7 + 1), s.count - n
end

local function append(s, t, n)
  s.times, s.count = s.times .. rep(pack('>I7', t), n), s.count + n
end

local log = {
  load = function(s, body)
    s.lost, s.times = sub(body, 1, 1) == '\1', sub(body, 2)
    s.count = #s.times / 7
  end,
  advance = function(s, t)
    if s.count > 0 and timeAt(s, 0) <= t - s.span then
      dropOldest(s, after(s, t - s.span))
      s.lost = false -- what was dropped was no newer
    end
  end,
  used = function(s) return s.count end,
  charge = function(s, t, cost)
    local bound = max(s.n, s.count) -- more than n are carried from another limit
    append(s, t, min(cost, bound + 1))
    if s.count > bound then
      dropOldest(s, s.count - bound)
      s.lost = true
    end
  end,
  till = function(s, _, most) return timeAt(s, s.count - most - 1) + s.span end,
  ends = function(s, t)
    if s.count == 0 then return t end
    return timeAt(s, s.count - 1) + s.span
  end,
  save = function(s)
    if s.count == 0 then return '' end
    return (s.lost and '\1' or '\0') .. s.times
  end,
}
windows[SLIDING], windows[1], windows[IN_FLIGHT], windows[HITS], windows[REFUSALS] = log, log, log, log, log
