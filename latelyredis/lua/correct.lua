-- KEYS: the record, and a key that remembers that this was done, if it must be done once. ARGV: what to do, an amount, the time and the number of resets of
-- the charge that is meant, or 65535 for any; and the rule. To ban, the amount is the end
-- and the time the start, and a third argument is BAN. With the second key, a third argument is for how many
-- milliseconds it is remembered.
local REFUND, CHARGE, OLDEST, RESET, ADD_BAN, END_BAN = 1, 2, 3, 4, 5, 6
local ANY = 65535
local what, amount, at, resets = unpack_('>BI7I7I2', ARGV[1])

local records, answer = openAll(0, 1)
if not records then return answer end
if KEYS[2] and not redis.call('SET', KEYS[2], '', 'PX', ARGV[3], 'NX') then return 'done' end
local r, taken = records[1], 0
if r.held then -- which is corrected
  r.held.ban = r.ban
  r = r.held
end

if what == RESET then
  -- A record without limits: a settlement of what was charged before finds the number of resets changed, also if
  -- the charge had expired.
  save({head = sub(r.head, 1, 1) .. '\0', key = r.key, keep = r.keep, resets = r.resets % 4095 + 1, found = r.found, ban = r.ban, all = {}})
elseif what == ADD_BAN then
  local byRule, _, _, count, remember, part = unpack_(BAN, ARGV[3])
  local b = r.ban or {ends = 0, since = 0, count = 0, remember = 0, byRule = 0, part = 0}
  if b.ends + b.remember < at then b.count = 0 end
  b.count, b.remember = max(b.count, count), max(b.remember, remember)
  if b.ends < amount or b.ends == amount and byRule == 0 and b.byRule == 1 then
    b.ends, b.since, b.byRule, b.part = amount, at, byRule, part
  end
  r.ban = b
  save(r)
elseif what == END_BAN then
  if r.ban then
    if now < r.ban.ends then taken = 1 end
    r.ban = nil
    save(r)
  end
elseif (r.found or what == CHARGE) and (resets == ANY or resets == r.resets) then
  if what == CHARGE then
    charge(r, amount)
  elseif what == REFUND then
    for j = 1, #r do r[j].window.refund(r[j], now, at, amount) end
  elseif not r.cut then
    if #r > 0 then taken = MOST end
    for j = 1, #r do taken = min(taken, r[j].window.oldest(r[j], now, amount)) end
  end
  save(r)
end
return pack('>I7I7', now, taken) .. (r.ban and bans.answer(r.ban) or '')
