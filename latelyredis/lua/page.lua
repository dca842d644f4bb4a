-- Returns a part of the list of bans. KEYS: the ends and the details.
local bans, details = KEYS[1], KEYS[2]
local of = redis.call('ZRANGEBYSCORE', bans, string.format('(%.0f', now), '+inf')
local out = {}
for i = 1, #of do
  local detail = redis.call('HGET', details, of[i])
  if detail then out[#out + 1] = struct.pack('>I4c0I4c0', #of[i], of[i], #detail, detail) end
end
return table.concat(out)
