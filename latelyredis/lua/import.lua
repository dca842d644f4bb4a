-- Adds a record that was counted elsewhere to that of the key. KEYS: the record, and the mark of this
-- import. ARGV: when nothing of it is used any more, the rule, and the record.
local ends = tonumber(ARGV[1])
if redis.call('GET', KEYS[2]) then return 'known' end
local records, answer = openAll(0, 1)
if not records then return answer end
if ends <= now then return 'expired' end

local r, from = records[1], {}
local other, i = readLimits(ARGV[3])
readState(from, other, ARGV[3], i)
local newest = from.newest
if newest - now <= SLACK then now = max(now, newest) end
loadAt(newest, other)
local same = true
for j = 1, #r.all do
  local s = r.all[j]
  local o = heir(s, other)
  if o and not sameLimit(s, o) then
    local carried = {}
    for k, v in pairs(s) do carried[k] = v end
    s.window.load(carried, '')
    carry(carried, o, min(newest, now))
    o, same = carried, false
  end
  if o then
    o.window.advance(o, now)
    s.window.advance(s, now)
    if o.window.used(o, now) == 0 then
    elseif s.window.used(s, now) == 0 then
      s.window.load(s, o.window.save(o), now)
    else
      s.window.add(s, o, now)
    end
  end
end
if not same then r.resets = r.resets % 4095 + 1 end -- earlier charges cannot be told from these
r.cut = r.cut or from.cut
save(r)
redis.call('SET', KEYS[2], '', 'PX', ceil((ends - now) / 1000) + 1)
return 'added'
