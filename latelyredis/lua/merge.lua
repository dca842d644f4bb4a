-- What a window needs to take over what was counted elsewhere, at the same limit:
--   add(s, o, t)  adds what o holds; both hold something and were advanced to t

local function addTimes(s, o)
  local times, i, j = {}, 0, 0
  while i < s.count or j < o.count do
    if j == o.count or i < s.count and timeAt(s, i) <= timeAt(o, j) then
      times[#times + 1], i = timeAt(s, i), i + 1
    else
      times[#times + 1], j = timeAt(o, j), j + 1
    end
  end
  for k = 1, #times do times[k] = pack('>I7', times[k]) end
  s.times, s.count = table.concat(times), #times
end

-- A log that has lost times holds as many as the limit at least, so what is older than all of
-- them decides nothing. It is dropped too, or lost would end when it leaves.
log.add = function(s, o)
  local from = max(s.lost and timeAt(s, 0) or 0, o.lost and timeAt(o, 0) or 0)
  addTimes(s, o)
  s.lost = s.lost or o.lost
  if from > 0 then dropOldest(s, after(s, from - 1)) end
end

local function addRing(s, o)
  local counts, first, newest = {}, min(oldestSlot(s), oldestSlot(o)), max(s.k, o.k)
  for _, ring in ipairs({s, o}) do
    for i = 0, ringLength(ring) - 1 do
      local k = oldestSlot(ring) + i
      counts[k] = (counts[k] or 0) + countAt(ring, i)
    end
  end
  clearRing(s)
  for k = first, newest do
    if (counts[k] or 0) > 0 then chargeRing(s, start(s, k), counts[k]) end
  end
end

-- slotTimes puts the times of s into slots.
local function slotTimes(s, t)
  if s.slotted then return end
  s.slotted, s.since = true, t
  clearRing(s)
  for i = 0, s.count - 1 do chargeRing(s, timeAt(s, i), 1) end
  s.times, s.count = '', 0
end

windows[SLOTS].add = function(s, o, t)
  if not s.slotted and not o.slotted and s.count + o.count <= 3 then
    addTimes(s, o)
    return
  end
  slotTimes(s, t)
  slotTimes(o, t)
  addRing(s, o)
  s.since = max(s.since, o.since)
end

level.add = function(s, o, t)
  local at, rest = emptyAt(s, t)
  local other, more = emptyAt(o, t)
  at, rest = at + other - t, rest + more
  if rest >= s.n then at, rest = at + 1, rest - s.n end
  local time, most = highest(s)
  if at - t > time or at - t == time and rest > most then at, rest = t + time, most end
  s.at, s.rest = at, rest
end

-- Windows that began at different times become one that ends with the later.
period.add = function(s, o)
  s.first, s.over, s.count = min(s.first, o.first), max(s.over, o.over), min(s.count + o.count, MOST)
end

windows[2].add = function(s, o)
  s.older, s.newer = min(s.older + o.older, BUCKET_FULL), min(s.newer + o.newer, BUCKET_FULL)
end
