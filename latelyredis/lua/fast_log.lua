-- See log.lua.
local lost, times = '\0', ''
if body ~= '' then
  lost, times = sub(body, 1, 1), sub(body, 2)
  used = #times / 7
  if unpack_('>I7', times) <= now - span then
    local gone = 1
    while gone < used and unpack_('>I7', times, gone * 7 + 1) <= now - span do gone = gone + 1 end
    times, used, lost = sub(times, gone * 7 + 1), used - gone, '\0'
  end
end
if used + cost <= most then
  times = times .. string.rep(pack('>I7', now), cost)
  used, status, body = used + cost, 6, lost .. times
else
  refused = true
  retry = unpack_('>I7', times, (used - most + cost - 1) * 7 + 1) + span - now
end
if used > 0 then ends = unpack_('>I7', times, #times - 6) + span end
