-- See two.lua.
local FULL = 4294967295
local k, older, newer = floor(now / span), 0, 0
if #v >= at then
  older, newer = unpack_('>I4I4', v, at)
  local passed = k - floor(newest / span)
  if passed == 1 then older, newer = newer, 0 elseif passed > 1 then older, newer = 0, 0 end
end
-- Of the older slot, left microseconds are in the window.
local left = k * span - 1 - now + span
if older * span > MOST or most * span > MOST then return 'repair' end
used = newer + ceil(older * left / span)
if older == FULL and left > 0 then used = newer + older end
if used + cost <= most then
  newer = newer + cost
  used, body = used + cost, pack('>I4I4', older, newer)
else
  local count, last, target = newer, (k + 1) * span - 1, most - cost
  if newer <= target then count, last, target = older, last - span, target - newer end
  if count == FULL then target = 0 end
  retry = last - floor(target * span / count) + span - now
end
ends = (newer > 0 and k + 2 or k + 1) * span - 1
