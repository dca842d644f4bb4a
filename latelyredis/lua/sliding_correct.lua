few.refund, few.oldest, few.each, few.clamp, few.ordered = log.refund, log.oldest, log.each, log.clamp, log.ordered
slots.refund = function(s, t, at, cost)
  if at <= s.since - s.span then return 0 end
  local taken = refundRing(s, t, at, cost)
  emptied(s)
  return taken
end
slots.oldest = function(s, t, cost)
  local taken = refundOldestRing(s, t, cost)
  emptied(s)
  return taken
end
slots.each = eachRing
slots.clamp = function(s, t)
  s.since = min(s.since, t)
  clampRing(s, t)
end
