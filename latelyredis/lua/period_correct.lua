period.oldest = function(s, _, cost)
  if s.count == MOST then return 0 end -- nobody knows what did not fit
  local taken = min(cost, s.count)
  s.count = s.count - taken
  return taken
end
period.refund = function(s, t, at, cost)
  if s.count == 0 or at < s.first then return 0 end
  return period.oldest(s, t, cost)
end
period.each = function(s, t)
  if s.count == 0 then return {}, {} end
  return {t}, {s.count}
end
period.clamp = function(s, t)
  if s.count == 0 or s.first <= t then return end
  local count = s.count
  s.count = 0
  period.charge(s, t, count)
end
