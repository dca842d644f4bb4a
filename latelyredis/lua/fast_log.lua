-- See log.lua.
local lost, first = '\0', at + 1
if #v > at then
  lost = sub(v, at, at)
  while first < #v and unpack_('>I7', v, first) <= now - span do first, lost = first + 7, '\0' end
  used = (#v - first + 1) / 7
end
if used + cost <= most then
  body, kept, added = lost, sub(v, first), pack('>I7', now)
  if cost > 1 then added = rep(added, cost) end
  used, ends = used + cost, now + span
else
  retry = unpack_('>I7', v, first + (used - most + cost - 1) * 7) + span - now
  ends = unpack_('>I7', v, #v - 6) + span
  if retry < 0 or retry > span or ends < now or ends > now + span then return 'repair' end
end
