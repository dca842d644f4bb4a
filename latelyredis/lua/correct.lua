-- KEYS: one record. ARGV: what to do, an amount, the time and the number of resets of
-- the charge that is meant, or 65535 for any; and the rule.
local REFUND, CHARGE, OLDEST, RESET = 1, 2, 3, 4
local ANY = 65535
local what, amount, at, resets = unpack_('>BI7I7I2', ARGV[1])

local records, answer = openAll(1)
if not records then return answer end
local r, taken = records[1], 0

if what == RESET then
  if r.found then
    -- A record without limits: a refund of what was charged before finds the number
    -- of resets changed.
    local empty = {key = r.key, keep = r.keep, resets = r.resets % 4095 + 1, found = true}
    save(empty)
  end
elseif (r.found or what == CHARGE) and (resets == ANY or resets == r.resets) then
  if what == CHARGE then
    charge(r, amount)
  elseif what == REFUND then
    for j = 1, #r do r[j].window.refund(r[j], now, at, amount) end
  elseif not r.cut then
    taken = MOST
    for j = 1, #r do taken = min(taken, r[j].window.oldest(r[j], now, amount)) end
  end
  save(r)
end
return pack('>I7I7', now, taken)
