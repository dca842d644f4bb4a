-- takeAt takes up to cost from the i-th slot, and returns how much. The ring must be
-- trimmed then.
local function takeAt(s, i, cost)
  local count = countAt(s, i)
  if count == s.full then return 0 end
  local taken = min(cost, count)
  setCount(s, i, count - taken)
  s.sum = s.sum - taken
  return taken
end

local function refundRing(s, _, at, cost)
  local k = number(s, at)
  if k > s.k or k < oldestSlot(s) then return 0 end
  local taken = takeAt(s, k - oldestSlot(s), cost)
  trimRing(s, 0)
  return taken
end

local function refundOldestRing(s, _, cost)
  local taken, i = 0, 0
  while taken < cost and s.sum > 0 and countAt(s, i) < s.full do
    taken, i = taken + takeAt(s, i, cost - taken), i + 1
  end
  trimRing(s, 0)
  return taken
end

local function eachRing(s, t)
  local times, counts = {}, {}
  for i = 1, ringLength(s) do
    local count = countAt(s, i - 1)
    if count > 0 then
      times[#times + 1] = min(last(s, oldestSlot(s) + i - 1), t)
      counts[#counts + 1] = count
    end
  end
  return times, counts
end

-- clampRing counts the slots after that of t in that.
local function clampRing(s, t)
  local k = number(s, t)
  if s.k <= k then return end
  local times, counts = eachRing(s, t)
  clearRing(s)
  for i = 1, #times do chargeRing(s, times[i], counts[i]) end
end
