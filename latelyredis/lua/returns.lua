-- tell notes that a node gives something back, for the others, and returns when. No two of these times are
-- equal.
local function tell(returns)
  local gave = math.max(now, tonumber(redis.call('GET', returns) or 0) + 1)
  redis.call('SET', returns, string.format('%.0f', gave), 'PX', 2592000000)
  return gave
end
