-- Sliding above 128: a list of up to 3 times, and slots when more are in the window, until all
-- of these have left. since is when slots began to count: what had left by then is
-- in none, and not all of them are empty. The first byte of a body tells times from slots.
local few, slots

local function loadSliding(s, body)
  setRing(s)
  if sub(body, 1, 1) == '\1' then
    s.window, s.since = slots, unpack_('>I7', body, 2)
    loadRing(s, body, 9)
  else
    s.window, s.times = few, sub(body, 2)
    s.count = #s.times / 7
  end
end

-- emptied goes back to times if nothing is in the slots.
local function emptied(s)
  if s.sum == 0 then s.window, s.times, s.count = few, '', 0 end
end

few = {
  load = loadSliding,
  advance = log.advance,
  used = log.used,
  charge = function(s, t, cost)
    if cost <= 3 - s.count then
      append(s, t, cost)
      return
    end
    s.window, s.since = slots, t
    clearRing(s)
    for i = 0, s.count - 1 do chargeRing(s, min(timeAt(s, i), t), 1) end
    chargeRing(s, t, cost)
  end,
  till = log.till,
  ends = log.ends,
  save = function(s)
    if s.count == 0 then return '' end
    return '\0' .. s.times
  end,
}
slots = {
  load = loadSliding,
  advance = function(s, t)
    advanceRing(s, t)
    emptied(s)
  end,
  used = function(s) return s.sum end,
  charge = chargeRing,
  till = tillRing,
  ends = ringEnds,
  save = function(s) return '\1' .. pack('>I7', s.since) .. saveRing(s) end,
}
windows[SLOTS] = few
