-- takeTimes removes up to n times equal to t, and returns how many.
local function takeTimes(s, t, n)
  local first = after(s, t - 1)
  n = min(n, after(s, t) - first)
  s.times, s.count = sub(s.times, 1, first * 7) .. sub(s.times, (first + n) * 7 + 1), s.count - n
  return n
end

-- timesOf returns the times, and 1 for each.
local function timesOf(s)
  local times, counts = {}, {}
  for i = 1, s.count do
    times[i], counts[i] = timeAt(s, i - 1), 1
  end
  return times, counts
end

-- ordered is without each, which takes twice as long: a log may have thousands of times, and each settlement checks them.
local function ordered(s, t)
  local latest = 0
  for i = 0, s.count - 1, 100 do
    local n = min(s.count - i, 100)
    local some = {unpack_('>' .. rep('I7', n), s.times, i * 7 + 1)}
    for j = 1, n do
      if some[j] < latest then return false end
      latest = some[j]
    end
  end
  return latest <= t and s.count == floor(s.count)
end

local function clampTimes(s, t)
  local kept = after(s, t)
  s.times = sub(s.times, 1, kept * 7) .. rep(pack('>I7', t), s.count - kept)
end

log.refund = function(s, _, at, cost)
  if s.lost then return 0 end
  return takeTimes(s, at, cost)
end
log.oldest = function(s, _, cost)
  if s.lost then return 0 end
  local taken = min(cost, s.count)
  dropOldest(s, taken)
  return taken
end
log.each, log.clamp, log.ordered = timesOf, clampTimes, ordered
