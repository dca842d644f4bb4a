-- Imports the record of a key that has none. KEYS: the record, and the mark of this import. ARGV: when
-- nothing of it is used any more, and the record.
local ends = tonumber(ARGV[1])
if redis.call('GET', KEYS[2]) then return 'known' end
if ends <= now then return 'expired' end
local lives = string.format('%.0f', math.ceil((ends - now) / 1000) + 1)
if not redis.call('SET', KEYS[1], ARGV[2], 'PX', lives, 'NX') then return 'merge' end
redis.call('SET', KEYS[2], '', 'PX', lives)
return 'added'
