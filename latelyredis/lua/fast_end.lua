if body then
  local lives = ceil((ends - now) / 1000) + 1
  if resets > 0 then
    local _, keep = unpack_('>BI7', rule)
    lives = max(lives, ceil(keep / 1000) + 1)
  end
  redis.call('SET', key, head .. pack('>I7I2', now, resets) .. body .. kept .. added, 'PX', lives)
end
return pack('>I7I2BI7I7I7I7I2', now, body and 6 or 1, 0, max(most - used, 0), retry, ends - now, 0, resets)
end
