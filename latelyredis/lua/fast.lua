-- Decisions about one limit of one rule, which is neither a shadow nor charged for what it
-- refuses, and not peeks. It is given what decide.lua is, and does the same in half the time. What is
-- unusual it leaves to the script that can do all.
local pack, unpack_, sub = struct.pack, struct.unpack, string.sub
local heads, rule, clock = ARGV[1], ARGV[2], now
local n, span, most = unpack_('>I4I7I4', rule, 11)

local function decide(subject) -- which fast_end.lua ends
local key = KEYS[subject]
local cost, now = unpack_('>I7', heads, subject * 8 - 7), clock
local v = redis.call('GET', key)
local resets, body = 0, ''
if v then
  if sub(v, 11, 27) ~= sub(rule, 9, 25) then return 'repair' end -- other limits
  local version, newest
  version, newest, resets = unpack_('>BI7I2', v)
  if version ~= 1 or resets >= 32768 or newest - now > 100000 then return 'repair' end
  if newest > now then now = newest end
  body = sub(v, 31)
  if #body ~= unpack_('>I3', v, 28) then return 'repair' end -- a ban
end
if cost == 0 or cost > most then return 'repair' end
local used, refused, retry, ends, status = 0, false, 0, now, 0
