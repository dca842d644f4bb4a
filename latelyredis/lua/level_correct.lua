-- See level.refund in internal/limit for why nothing of this is a credit.
level.refund = function(s, t, at, cost)
  local empty, rest = emptyAt(s, t)
  local top, topRest = highest(s)
  if empty == t and rest == 0 or empty - at > top or empty - at == top and rest >= topRest then return 0 end
  local time, more = takes(s, min(cost, s.most + max(s.most, s.n)))
  if time < t - at then return 0 end
  time = time - (t - at)
  local full = empty - t
  if time > full or time == full and more >= rest then
    s.at, s.rest = t, 0
    return drains(s, full, rest, false)
  end
  s.at, s.rest = empty - time, rest - more
  if rest < more then s.at, s.rest = s.at - 1, s.rest + s.n end
  return drains(s, time, more, false)
end
level.oldest = function(s, t, cost)
  local used = level.used(s, t)
  if cost == 0 or used == 0 then return 0 end
  local taken = min(cost, used)
  local time, rest = takes(s, used - taken)
  s.at, s.rest = t + time, rest
  return taken
end
level.each = function(s, t)
  local used = level.used(s, t)
  if used == 0 then return {}, {} end
  return {t}, {used}
end
-- clamp is told the newest time of the record: the level is kept, not the time.
level.clamp = function(s, t, newest)
  if s.at >= newest then s.at = t + s.at - newest else s.at, s.rest = 0, 0 end
end
