-- The slots of Sliding above 128: k is the number of the newest slot, sum
-- the sum of all, and counts are those of the slots from the oldest with a count to
-- the newest, bytes each: as few as the largest count needs. A count that is full
-- stays full and gives nothing back.
local formats = {'>B', '>I2', nil, '>I4'}

local function setRing(s)
  setWidth(s)
  s.full = s.n < 255 and 255 or s.n < 65535 and 65535 or 4294967295
end

local function clearRing(s)
  s.k, s.sum, s.bytes, s.counts = 0, 0, 1, ''
end

local function countAt(s, i)
  return (unpack_(formats[s.bytes], s.counts, i * s.bytes + 1))
end

local function ringLength(s) return #s.counts / s.bytes end

-- oldestSlot returns its number.
local function oldestSlot(s) return s.k - ringLength(s) + 1 end

-- widen makes counts wide enough for one of that size.
local function widen(s, count)
  local bytes = count > 65535 and 4 or count > 255 and 2 or 1
  if bytes <= s.bytes then return end
  local wide = {}
  for i = 1, ringLength(s) do
    wide[i] = pack(formats[bytes], countAt(s, i - 1))
  end
  s.counts, s.bytes = table.concat(wide), bytes
end

local function setCount(s, i, count)
  widen(s, count)
  local b, at = s.bytes, i * s.bytes
  s.counts = sub(s.counts, 1, at) .. pack(formats[b], count) .. sub(s.counts, at + b + 1)
end

-- trimRing removes the slots before the i-th, and what then comes first without a count.
local function trimRing(s, i)
  if s.sum == 0 then return end
  while countAt(s, i) == 0 do i = i + 1 end
  if i > 0 then s.counts = sub(s.counts, i * s.bytes + 1) end
end

-- loadRing reads what saveRing returned, from the place i of body on.
local function loadRing(s, body, i)
  local at
  s.k, s.sum, s.bytes, at = unpack_('>I7I6B', body, i)
  s.counts = sub(body, at)
end

local function saveRing(s) return pack('>I7I6B', s.k, s.sum, s.bytes) .. s.counts end

local function advanceRing(s, t)
  local i, oldest = 0, oldestSlot(s)
  while s.sum > 0 and t >= last(s, oldest + i) + s.span do
    s.sum, i = s.sum - countAt(s, i), i + 1
  end
  if i > 0 then trimRing(s, i) end
end

local function chargeRing(s, t, cost)
  if cost == 0 then return end
  local k = number(s, t)
  if s.sum == 0 then
    s.k, s.counts, s.bytes = k, '\0', 1
  elseif k > s.k then
    s.counts, s.k = s.counts .. rep('\0', (k - s.k) * s.bytes), k
  end
  local i = ringLength(s) - 1
  local count = countAt(s, i)
  local added = min(cost, s.full - count)
  s.sum = s.sum + added
  setCount(s, i, count + added)
end

local function tillRing(s, _, most)
  local left, i = s.sum - countAt(s, 0), 0
  while left > most do
    i = i + 1
    left = left - countAt(s, i)
  end
  return last(s, oldestSlot(s) + i) + s.span
end

local function ringEnds(s)
  local i = ringLength(s) - 1
  while countAt(s, i) == 0 do i = i - 1 end
  return last(s, oldestSlot(s) + i) + s.span
end
