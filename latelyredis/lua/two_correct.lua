windows[2].refund = function(s, t, at, cost)
  local k = number(s, at)
  local name = k == s.k and 'newer' or k == s.k - 1 and not bucketGone(s, t) and 'older'
  if not name or s[name] == BUCKET_FULL then return 0 end
  local taken = min(cost, s[name])
  s[name] = s[name] - taken
  return taken
end
windows[2].oldest = function(s, t, cost)
  local taken = 0
  if not bucketGone(s, t) then
    if s.older == BUCKET_FULL then return 0 end
    taken = min(cost, s.older)
    s.older = s.older - taken
  end
  if s.newer == BUCKET_FULL then return taken end
  local more = min(cost - taken, s.newer)
  s.newer = s.newer - more
  return taken + more
end
windows[2].each = function(s, t)
  local times, counts = {}, {}
  if s.older > 0 then times[1], counts[1] = last(s, s.k - 1), s.older end
  if s.newer > 0 then
    times[#times + 1], counts[#counts + 1] = min(last(s, s.k), t), s.newer
  end
  return times, counts
end
windows[2].clamp = function(s, t)
  local k = number(s, t)
  if s.k <= k then return end
  s.k, s.older, s.newer = k, 0, min(s.older + s.newer, BUCKET_FULL)
end
