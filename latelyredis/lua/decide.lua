-- KEYS: the records of a subject. ARGV: the cost and flags, the rule of each key, and
-- with the flag 4 the time and the numbers of resets of a charge to be withdrawn.
local cost, flags = unpack_('>I7B', ARGV[1])
local peek, refused = flags % 2 == 1, flags % 4 >= 2

local records, answer = openAll(1)
if not records then return answer end

if flags >= 4 then
  local withdrawn = ARGV[#KEYS + 2]
  local at = unpack_('>I7', withdrawn)
  for i = 1, #records do
    local r = records[i]
    if unpack_('>I2', withdrawn, 6 + 2 * i) == r.resets then
      for j = 1, #r do r[j].window.refund(r[j], now, at, cost) end
      r.changed = true
    end
  end
end

local function wait(s)
  if cost > s.most then return NEVER end
  if cost == 0 or s.window.used(s, now) <= s.most - cost then return 0 end
  return s.window.till(s, now, s.most - cost) - now
end

for i = 1, #records do
  local r = records[i]
  local above = false
  for j = 1, #r do
    local s = r[j]
    local left = s.most - min(s.window.used(s, now), s.most)
    local higher = cost > s.most
    if cost > left then r.refused = true end
    -- The limit that is told is that with the least remaining, and of such that which
    -- refuses for longest, but one that the cost is above before all others.
    if j == 1 or higher and not above or higher == above and
        (left < r.left or left == r.left and cost > left and wait(s) > wait(r[r.told])) then
      r.left, r.told, above = left, j, higher
    end
  end
  if r.refused and not r.shadow then refused = true end
end

local out = {pack('>I7', now)}
for i = 1, #records do
  local r = records[i]
  local charged = not (refused and r.shadow) and (r.countRefused or not refused and not r.refused)
  local status = r.refused and 1 or 0
  if charged and not (refused and peek) and cost > 0 then
    charge(r, cost)
    r.changed = not peek
    status = status + 4
  end
  local retry, reset, delay = 0, 0, 0
  for j = 1, #r do
    local s = r[j]
    if refused or r.refused then
      retry = max(retry, wait(s))
    elseif s.a == 5 and s.most > 0 then
      delay = max(delay, s.window.delay(s, now))
    end
    if s.window.used(s, now) > 0 then reset = max(reset, s.window.ends(s, now) - now) end
  end
  if charged then
    r.left = r.left - min(cost, r.left)
    if not refused and not r.refused and not peek and (cost > 0 or r[1].a ~= IN_FLIGHT) then status = status + 2 end
  end
  if r.changed and not peek then save(r) end
  out[i + 1] = pack('>BI2I7I7I7I7I2', status, r.told - 1, r.left, retry, reset, delay, r.resets)
end
return table.concat(out)
