-- See level.lua. Products are below 2^53, or it is left to that.
local format = n <= 65536 and '>I7I2' or '>I7I4'
local empty, rest = now, 0
if #v >= at then
  empty, rest = unpack_(format, v, at)
  if empty < now then empty, rest = now, 0 end
  local p = (empty - now) * n + rest
  if p > MOST - span then return 'repair' end
  used = ceil(p / span)
  if used > most + n and used > 2 * most then return 'repair' end
end
local p = cost * span
if p > MOST or most * span > MOST then return 'repair' end
if used + cost <= most then
  local time = floor(p / n)
  empty, rest = empty + time, rest + p - time * n
  if rest >= n then empty, rest = empty + 1, rest - n end
  used, body = used + cost, pack(format, empty, rest)
else
  p = (most - cost) * span
  local time = floor(p / n)
  retry = empty - time - now
  if rest > p - time * n then retry = retry + 1 end
end
ends = empty
if rest > 0 then ends = empty + 1 end
