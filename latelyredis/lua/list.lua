-- Changes a part of the list of bans: which keys are banned, and until when. The bans
-- themselves are in the records. KEYS: the ends, the details and the changes.
-- ARGV: whose ban, and if it is to be added its end and its details. Returns whether that
-- was not known.
local bans, details, changes = KEYS[1], KEYS[2], KEYS[3]
local of, ends, detail = ARGV[1], tonumber(ARGV[2]), ARGV[3]
local text = '%.0f'
for _, over in ipairs(redis.call('ZRANGEBYSCORE', bans, '-inf', text:format(now), 'LIMIT', 0, 20)) do
  redis.call('ZREM', bans, over)
  redis.call('HDEL', details, over)
end
local known = redis.call('ZSCORE', bans, of)
if ends == 0 then
  if not known then return '0' end
  redis.call('ZREM', bans, of)
  redis.call('HDEL', details, of)
else
  known = tonumber(known or '0')
  -- A node that saw the ban in its record may have listed it before, without reason and source.
  if ends <= now or known > ends or known == ends and #(redis.call('HGET', details, of) or '') >= #detail then return '0' end
  redis.call('ZADD', bans, text:format(ends), of)
  redis.call('HSET', details, of, detail)
  local last = redis.call('ZREVRANGE', bans, 0, 0, 'WITHSCORES')[2]
  local lives = text:format(math.ceil((tonumber(last) - now) / 1000) + 1)
  redis.call('PEXPIRE', bans, lives)
  redis.call('PEXPIRE', details, lives)
end
redis.call('XADD', changes, 'MAXLEN', '~', 10000, '*', of, detail)
redis.call('PEXPIRE', changes, 2592000000)
return '1'
