-- Sliding above 128: up to 3 times, and slots when more are in the window, until all
-- of these have left. since is when slots began to count: what had left by then is
-- in none. The first byte tells times from slots.
windows[SLOTS] = {
  load = function(s, body)
    setRing(s)
    s.slotted, s.times, s.count = sub(body, 1, 1) == '\1', '', 0
    if s.slotted then
      s.since = unpack_('>I7', body, 2)
      loadRing(s, body, 9)
    else
      clearRing(s)
      s.times = sub(body, 2)
      s.count = #s.times / 7
    end
  end,
  advance = function(s, t)
    if s.slotted then
      advanceRing(s, t)
      s.slotted = s.sum > 0
    else
      log.advance(s, t)
    end
  end,
  used = function(s)
    if s.slotted then return s.sum end
    return s.count
  end,
  charge = function(s, t, cost)
    if not s.slotted then
      if cost <= 3 - s.count then
        append(s, t, cost)
        return
      end
      s.slotted, s.since = true, t
      for i = 0, s.count - 1 do chargeRing(s, min(timeAt(s, i), t), 1) end
      s.times, s.count = '', 0
    end
    chargeRing(s, t, cost)
  end,
  till = function(s, t, most)
    if s.slotted then return tillRing(s, t, most) end
    return log.till(s, t, most)
  end,
  ends = function(s, t)
    if s.slotted then return ringEnds(s, t) end
    return log.ends(s, t)
  end,
  save = function(s)
    if s.slotted then return '\1' .. pack('>I7', s.since) .. saveRing(s) end
    if s.count == 0 then return '' end
    return '\0' .. s.times
  end,
}
