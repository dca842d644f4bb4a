windows[2] = {
  load = function(s, body)
    setRing(s)
    loadRing(s, body, 1)
  end,
  advance = advanceRing,
  used = function(s, t)
    if s.sum == 0 then return 0 end
    local count = countAt(s, 0)
    if count == s.full then return s.sum end
    return s.sum - count + weigh(s, count, oldestSlot(s), t)
  end,
  charge = chargeRing,
  till = function(s, _, most)
    local k, count, left = leaving(s, most)
    if count == s.full or most == left then return last(s, k) + s.span end
    return dropsAt(s, count, k, most - left)
  end,
  ends = ringEnds,
  save = saveRing,
}
