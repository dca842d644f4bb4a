-- Decisions about one limit of one rule, which is neither a shadow nor charged for what it
-- refuses, and not peeks. It is given what decide.lua is, and does the same in half the time. What is
-- unusual it leaves to the script that can do all, which also checks a record with a time that cannot be.
local pack, unpack_, byte, sub, rep = struct.pack, struct.unpack, string.byte, string.sub, string.rep
local floor, ceil, max = math.floor, math.ceil, math.max
local MOST = 2 ^ 53 - 1
local heads, rule, clock = ARGV[1], ARGV[2], now
local algorithm, n, span, most = unpack_('>BI4I7I4', rule, 10)
local head = sub(rule, 26)

local function decide(subject) -- which fast_end.lua ends
local key = KEYS[subject]
local cost, now = unpack_('>I7', heads, subject * 8 - 7), clock
if cost == 0 or cost > most then return 'repair' end
local v = redis.call('GET', key) or ''
local at, newest, resets = #head + 10, 0, 0 -- the counts begin at the byte at
if v ~= '' then
  if sub(v, 1, #head) ~= head then return 'repair' end -- other limits
  newest, resets = unpack_('>I7I2', v, at - 9)
  if resets >= 16384 or newest - now > 100000 then return 'repair' end -- a ban, or a bucket that was cut
  if newest > now then now = newest end
end
local used, retry, ends = 0, 0, now
local body, kept, added = nil, '', '' -- the counts, in three parts, if the event is allowed
