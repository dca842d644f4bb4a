-- Changes a part of the list of bans: which keys are banned, and until when. The bans
-- themselves are in the records. KEYS: the ends, the details, the changes, and the bans that were ended lately.
-- ARGV: whose ban; if it is to be added its end and its details; the time at which its record had it, or had it no
-- longer; and 1 if it held until then. Returns 1 if that was not known, and 2 if the ban was ended since: a node that has
-- seen a ban lists it afterwards, and another may have ended it meanwhile.
local bans, details, changes, gone = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local of, ends, detail, at, held = ARGV[1], tonumber(ARGV[2]), ARGV[3], tonumber(ARGV[4]), ARGV[5] == '1'
local LATE = 60000 -- ms, how late a node may list a ban
local text = '%.0f'
for _, over in ipairs(redis.call('ZRANGEBYSCORE', bans, '-inf', text:format(now), 'LIMIT', 0, 20)) do
  redis.call('ZREM', bans, over)
  redis.call('HDEL', details, over)
end
local known = redis.call('ZSCORE', bans, of)
if ends == 0 then
  if not known and not held then return '0' end
  redis.call('ZREMRANGEBYSCORE', gone, '-inf', text:format(now - LATE * 1000))
  redis.call('ZADD', gone, text:format(at), of)
  redis.call('PEXPIRE', gone, LATE)
  redis.call('ZREM', bans, of)
  redis.call('HDEL', details, of)
else
  if at <= tonumber(redis.call('ZSCORE', gone, of) or '-1') then return '2' end
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
