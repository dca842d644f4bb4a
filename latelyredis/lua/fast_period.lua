-- See period.lua, for Fixed.
local over = 0
if #v >= at then
  over, used = unpack_(#v - at == 10 and '>I7I4' or '>I7I7', v, at)
  if now >= over then used = 0 elseif over > now + span then return 'repair' end
end
if used + cost <= most then
  if used == 0 then over = now + span end
  used = used + cost
  body = pack('>I7I4', over, used)
else
  retry = over - now
end
ends = over
