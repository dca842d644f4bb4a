if status >= 4 then
  local lives = math.ceil((ends - now) / 1000) + 1
  if resets > 0 then
    local _, keep = unpack_('>BI7', rule)
    lives = math.max(lives, math.ceil(keep / 1000) + 1)
  end
  v = pack('>BI7I2', 1, now, resets) .. sub(rule, 9, 25) .. pack('>I3', #body) .. body
  redis.call('SET', key, v, 'PX', lives)
end
local left = 0
if used < most then left = most - used end
if refused then status = 1 end
return pack('>I7I2BI7I7I7I7I2', now, status, 0, left, retry, ends - now, 0, resets)
end
