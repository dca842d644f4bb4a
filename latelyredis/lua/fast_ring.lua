-- See ring.lua, weighted.lua and sliding.lua. Slots are whole microseconds wide. When times
-- move to slots, or counts need more bytes, it is left to those.
local width = span % 3000 == 0 and span / 60 or span / 64
local full = n < 255 and 255 or n < 65535 and 65535 or 4294967295
local weighted, times = algorithm == 2, false
local prefix, first, slot = '', at, floor(now / width)
local k, sum, bytes, format, oldest = slot, 0, 1, '>B', slot + 1

if not weighted then
  times = byte(v, at) ~= 1
  if not times then prefix, first = sub(v, at, at + 7), at + 8 end
end
if #v > first and not times then
  k, sum, bytes, first = unpack_('>I7I6B', v, first)
  if bytes > 1 then format = bytes == 2 and '>I2' or '>I4' end
  oldest = k - (#v - first + 1) / bytes + 1
  while sum > 0 and now >= (oldest + 1) * width - 1 + span do
    sum, first, oldest = sum - unpack_(format, v, first), first + bytes, oldest + 1
  end
  while sum > 0 and unpack_(format, v, first) == 0 do first, oldest = first + bytes, oldest + 1 end
  if sum == 0 then
    prefix, k, bytes, format, oldest = '', slot, 1, '>B', slot + 1
    times, first = not weighted, #v + 1
  end
end

if times then
  first = max(first, at + 1)
  while first < #v and unpack_('>I7', v, first) <= now - span do first = first + 7 end
  used = cost + max(#v - first + 1, 0) / 7
  if used > 3 then return 'repair' end
  body, kept, added, ends = '\0', sub(v, first), rep(pack('>I7', now), cost), now + span
else
  local count, left = 0, 0
  used = sum
  if sum > 0 then
    count, left = unpack_(format, v, first), (oldest + 1) * width - 1 - (now - span)
    -- The oldest slot is weighed, unless it is in the window or full.
    if weighted and left < width and count < full then
      if count * left > MOST then return 'repair' end
      used = sum - count + ceil(count * left / width)
    end
  end
  if used + cost <= most then
    local newest = cost
    if sum == 0 then
      kept = ''
    elseif slot > k then
      kept, k = sub(v, first) .. rep('\0', (slot - k - 1) * bytes), slot
    else
      newest, kept = newest + unpack_(format, v, #v - bytes + 1), sub(v, first, -bytes - 1)
    end
    if bytes == 1 and newest > 255 or bytes == 2 and newest > 65535 then return 'repair' end
    used, body, added = used + cost, prefix .. pack('>I7I6B', k, sum + cost, bytes), pack(format, newest)
    ends = (k + 1) * width - 1 + span
  else
    local target, rest, i = most - cost, sum, first - bytes
    repeat
      i = i + bytes
      count = unpack_(format, v, i)
      rest = rest - count
    until rest <= target
    retry = (oldest + (i - first) / bytes + 1) * width - 1 + span - now
    if weighted and count < full and rest < target then
      if (target - rest) * width > MOST then return 'repair' end
      retry = retry - floor((target - rest) * width / count)
    end
    i = #v - bytes + 1
    while unpack_(format, v, i) == 0 do i = i - bytes end
    ends = (oldest + (i - first) / bytes + 1) * width - 1 + span
  end
end
