-- What may have drained since is not given back: as much as the largest N drains.
variable.refund = function(s, t, at, cost)
  local whole, part = full(s, t)
  cost = min(cost, holds(s))
  local time = t - at
  if time / s.span * s.top > cost + 2 then return 0 end
  local gone, rest = muldiv(time, s.top, s.span)
  if whole + gone + (part + rest >= s.span and 1 or 0) >= holds(s) then return 0 end -- it may have been cut since
  local back, more = cost - gone, -rest
  if more < 0 then back, more = back - 1, more + s.span end
  if back < 0 then return 0 end
  if back > whole or back == whole and more > part then back, more = whole, part end
  whole, part = whole - back, part - more
  if part < 0 then whole, part = whole - 1, part + s.span end
  s.whole, s.part, s.at = whole, part, t
  return back
end
variable.oldest = function(s, t, cost)
  local used = variable.used(s, t)
  local taken = min(cost, used)
  if taken > 0 then s.whole, s.part, s.at = used - taken, 0, t end
  return taken
end
variable.each = function(s, t)
  local used = variable.used(s, t)
  if used == 0 then return {}, {} end
  return {t}, {used}
end
variable.clamp = function(s, t) s.at = t end
