windows[SLOTS].refund = function(s, t, at, cost)
  if not s.slotted then return takeTimes(s, at, cost) end
  if at <= s.since - s.span then return 0 end
  local taken = refundRing(s, t, at, cost)
  s.slotted = s.sum > 0
  return taken
end
windows[SLOTS].oldest = function(s, t, cost)
  if not s.slotted then
    local taken = min(cost, s.count)
    dropOldest(s, taken)
    return taken
  end
  local taken = refundOldestRing(s, t, cost)
  s.slotted = s.sum > 0
  return taken
end
windows[SLOTS].each = function(s, t)
  if s.slotted then return eachRing(s, t) end
  return timesOf(s)
end
windows[SLOTS].clamp = function(s, t)
  if s.slotted then
    s.since = min(s.since, t)
    clampRing(s, t)
  else
    clampTimes(s, t)
  end
end
