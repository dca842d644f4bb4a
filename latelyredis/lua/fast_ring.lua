-- See ring.lua, weighted.lua and sliding.lua. Slots are whole microseconds wide. When times
-- move to slots, or counts need more bytes, it is left to those.
local width = span / 60
if span % 3000 ~= 0 then width = span / 64 end
local full = n < 255 and 255 or n < 65535 and 65535 or 4294967295
local weighted = string.byte(rule, 10) == 2
local prefix, ring = '', 1
local k, sum, bytes, counts = math.floor(now / width), 0, 1, ''
local format, oldest = '>B', 0
local slot = k

if not weighted then
  if string.byte(body) == 1 then
    prefix, ring = sub(body, 1, 8), 9
  else
    ring = 0
  end
end
if ring > 0 and body ~= '' then
  local at
  k, sum, bytes, at = unpack_('>I7I6B', body, ring)
  counts = sub(body, at)
  if bytes == 2 then format = '>I2' elseif bytes == 4 then format = '>I4' end
  oldest = k - #counts / bytes + 1
  local gone = 0
  while sum > 0 and now >= (oldest + gone + 1) * width - 1 + span do
    sum, gone = sum - unpack_(format, counts, gone * bytes + 1), gone + 1
  end
  if sum == 0 then
    prefix, k, bytes, counts, format, body = '', slot, 1, '', '>B', ''
    if not weighted then ring = 0 end
  elseif gone > 0 then
    while unpack_(format, counts, gone * bytes + 1) == 0 do gone = gone + 1 end
    counts, oldest = sub(counts, gone * bytes + 1), oldest + gone
  end
end

if ring == 0 then
  local times = sub(body, 2)
  while times ~= '' and unpack_('>I7', times) <= now - span do times = sub(times, 8) end
  used = #times / 7 + cost
  if used > 3 then return 'repair' end
  times = times .. string.rep(pack('>I7', now), cost)
  status, body, ends = 6, '\0' .. times, now + span
else
  used = sum
  if weighted and sum > 0 then
    local count, left = unpack_(format, counts), (oldest + 1) * width - 1 - (now - span)
    if count < full and left < width then
      if count * left > 9007199254740991 then return 'repair' end
      used = sum - count + math.ceil(count * left / width)
    end
  end
  if used + cost <= most then
    if counts == '' then
      counts = '\0'
    elseif slot > k then
      counts, k = counts .. string.rep('\0', (slot - k) * bytes), slot
    end
    local count = unpack_(format, counts, #counts - bytes + 1) + cost
    if bytes == 1 and count > 255 or bytes == 2 and count > 65535 then return 'repair' end
    counts = sub(counts, 1, -bytes - 1) .. pack(format, count)
    used, status = used + cost, 6
    body = prefix .. pack('>I7I6B', k, sum + cost, bytes) .. counts
    ends = (k + 1) * width - 1 + span
  else
    refused = true
    local target, left, i, count = most - cost, sum, -1, 0
    repeat
      i = i + 1
      count = unpack_(format, counts, i * bytes + 1)
      left = left - count
    until left <= target
    retry = (oldest + i + 1) * width - 1 + span - now
    if weighted and count < full and left < target then
      if (target - left) * width > 9007199254740991 then return 'repair' end
      retry = retry - math.floor((target - left) * width / count)
    end
    i = #counts / bytes - 1
    while unpack_(format, counts, i * bytes + 1) == 0 do i = i - 1 end
    ends = (oldest + i + 1) * width - 1 + span
  end
end
