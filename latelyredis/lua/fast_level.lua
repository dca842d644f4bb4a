-- See level.lua. Products are below 2^53, or it is left to that.
local at, rest = now, 0
if body ~= '' then
  at, rest = unpack_('>I7I4', body)
  if at < now then at, rest = now, 0 end
  local p = (at - now) * n + rest
  if p > 9007199254740991 - span then return 'repair' end
  used = math.ceil(p / span)
end
local p = cost * span
if p > 9007199254740991 or most * span > 9007199254740991 then return 'repair' end
if used + cost <= most then
  local time = math.floor(p / n)
  at, rest = at + time, rest + p - time * n
  if rest >= n then at, rest = at + 1, rest - n end
  used, status, body = used + cost, 6, pack('>I7I4', at, rest)
else
  refused = true
  p = (most - cost) * span
  local time = math.floor(p / n)
  retry = at - time - now
  if rest > p - time * n then retry = retry + 1 end
end
ends = at
if rest > 0 then ends = at + 1 end
