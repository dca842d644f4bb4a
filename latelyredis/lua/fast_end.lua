if body then
  local lives = ends - now
  if resets > 0 then lives = unpack_('>I7', rule, 2) end
  redis.call('SET', key, head .. pack('>I7I2', now, resets) .. body .. kept .. added, 'PX', ceil(lives / 1000) + 1)
end
return pack('>I7I2BI7I7I7I7I2', now, body and 6 or 1, 0, max(most - used, 0), retry, ends - now, 0, resets)
end
