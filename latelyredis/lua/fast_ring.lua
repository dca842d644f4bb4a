-- See ring.lua and sliding.lua. Slots are whole microseconds wide. When times
-- move to slots, or counts need more bytes, it is left to those.
local width = span % 3000 == 0 and span / 60 or span / 64
local times, first, slot = byte(v, at) ~= 1, at + 1, floor(now / width)
local k, sum, bytes, format, oldest

if not times then
  k, sum, bytes, first = unpack_('>I7I6B', v, at + 8)
  if k > slot then return 'repair' end
  format = bytes == 1 and '>B' or bytes == 2 and '>I2' or '>I4'
  oldest = k - (#v - first + 1) / bytes + 1
  while sum > 0 and now >= (oldest + 1) * width - 1 + span do
    sum, first, oldest = sum - unpack_(format, v, first), first + bytes, oldest + 1
  end
  times = sum == 0
  while sum > 0 and unpack_(format, v, first) == 0 do first, oldest = first + bytes, oldest + 1 end
end

if times then
  if sum then first = #v + 1 end -- the slots have left
  while first < #v and unpack_('>I7', v, first) <= now - span do first = first + 7 end
  used = cost + max(#v - first + 1, 0) / 7
  if used > 3 or used > most then return 'repair' end
  body, kept, added, ends = '\0', sub(v, first), rep(pack('>I7', now), cost), now + span
elseif sum + cost <= most then
  local newest = cost
  if slot > k then
    kept, k = sub(v, first) .. rep('\0', (slot - k - 1) * bytes), slot
  else
    newest, kept = newest + unpack_(format, v, #v - bytes + 1), sub(v, first, -bytes - 1)
  end
  if bytes == 1 and newest > 255 or bytes == 2 and newest > 65535 then return 'repair' end
  used, body, added = sum + cost, sub(v, at, at + 7) .. pack('>I7I6B', k, sum + cost, bytes), pack(format, newest)
  ends = (k + 1) * width - 1 + span
else
  local rest, i = sum, first - bytes
  used = sum
  repeat
    i = i + bytes
    rest = rest - unpack_(format, v, i)
  until rest <= most - cost
  retry = (oldest + (i - first) / bytes + 1) * width - 1 + span - now
  i = #v - bytes + 1
  while unpack_(format, v, i) == 0 do i = i - bytes end
  ends = (oldest + (i - first) / bytes + 1) * width - 1 + span
end
