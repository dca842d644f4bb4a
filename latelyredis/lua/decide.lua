-- Decisions about subjects that have the same rules. KEYS: the records of each. ARGV: cost 7 and
-- flags 1 of each, the rules, and with the flag 4, of the only subject, the time, and of each key the number of
-- resets and whether the ban has counted, of a charge to be withdrawn. With the flag 16, the cost is what a node has
-- admitted, and the keys of each subject are one record and the number of the last merge of the node; behind the rule is
-- the number of this merge: it is charged once, however often it is sent. With the flag 32, an event that would begin a
-- ban, or fills a limit that counts what it refuses, which cannot be withdrawn, changes nothing. The answer is 'begins', or
-- 'watches' if only shadows refuse. With the flag 64, rules of another subject refuse it, and bans have not counted it.
-- With the flag 128, the rules count answers, and the event has none yet: only refusals are counted. With the flags 128 and
-- 16, it is an answer: it is counted whatever the limits allow, under each rule as if that were alone.
local heads, clock = ARGV[1], now
local keys = #KEYS * 8 / #heads -- of a subject

local function wait(s, cost)
  if cost > s.most then return NEVER end
  if cost == 0 or s.window.used(s, now) <= s.most - cost then return 0 end
  return s.window.till(s, now, s.most - cost) - now
end

local function decide(subject)
  local cost, flags = unpack_('>I7B', heads, subject * 8 - 7)
  local peek, again, banned, merge, waits = flags % 2 == 1, flags % 4 >= 2, flags % 16 >= 8, flags % 32 >= 16, flags % 64 >= 32
  local look, answers = flags >= 128 and not merge, flags >= 128 and merge
  local refused = again or flags % 128 >= 64 -- again: this event has been judged, and rules of another subject refuse it
  local waiting = false

  now = clock
  local records, answer = openAll((subject - 1) * keys, merge and not answers and 1 or keys)
  if not records then return answer end

  local told, marker = ARGV[3], nil
  if merge and not answers then
    if (tonumber(redis.call('GET', KEYS[subject * keys])) or 0) < tonumber(told) then -- an earlier one may arrive late
      charge(records[1], cost)
      records[1].changed, marker = true, KEYS[subject * keys]
    end
    cost = 0
  end

  if flags % 8 >= 4 then
    local withdrawn = ARGV[keys + 2]
    local at = unpack_('>I7', withdrawn)
    for i = 1, #records do
      local r = records[i]
      local resets, struck = unpack_('>I2B', withdrawn, 5 + 3 * i)
      if resets == r.resets then
        for j = 1, #r do r[j].window.refund(r[j], now, at, cost) end
        local held = r.held or {}
        for j = 1, #held do held[j].window.refund(held[j], now, at, cost) end
        r.changed = true
      end
      if struck == 1 and r.strikes then
        r.strikes.window.refund(r.strikes, now, at, 1)
        r.changed = true
      end
    end
  end

  for i = 1, #records do
    local r = records[i]
    if r.ban and now < r.ban.ends then
      bans.holds(r, cost > 0 and not peek and not again and not look)
      if not r.shadow and not answers then banned = true end
    end
  end

  for i = 1, #records do
    local r = records[i]
    local s = r.strikes
    if r.banned then
    elseif banned then
      r.skipped, r.left = true, 0
    else
      if s and s.a == HITS and cost > 0 and not look and (peek or not again) then
        if bans.strike(r, peek, waits) then waiting = true end
      elseif #r == 0 then
        r.left = s.n - min(s.window.used(s, now), s.n)
      end
      local above, over, tells = false, false, not r.refused
      for j = 1, #r do
        local s = r[j]
        local left = s.most - min(s.window.used(s, now), s.most)
        local higher = cost > s.most
        if cost > left then over = true end
        -- The limit that is told is that with the least remaining, and of such that which
        -- refuses for longest, but one that the cost is above before all others.
        if tells and (j == 1 or higher and not above or higher == above and
            (left < r.left or left == r.left and cost > left and wait(s, cost) > wait(r[r.told], cost))) then
          r.left, r.told, above = left, j, higher
        end
      end
      if over and answers then
        r.refused = r.refused or r.shadow -- it would have refused the request
      elseif over then
        if s and s.a == REFUSALS and not again and bans.strike(r, peek, waits) or waits and r.countRefused and not look then waiting = true end
        r.refused = true
      end
    end
    if r.refused and not r.shadow and not answers then refused = true end
  end
  if waiting then return refused and 'begins' or 'watches' end
  refused = refused or banned

  local out, last = {pack('>I7', now)}, ''
  for i = 1, #records do
    local r = records[i]
    local charged = not banned and not r.banned and not (refused and r.shadow) and (r.countRefused or not refused and not r.refused)
    if look then charged = false elseif answers then charged = not r.banned and not (r.shadow and r.refused) end
    local status = r.refused and 1 or 0
    if charged and not (refused and peek) and cost > 0 and #r > 0 then
      if not refused and not r.refused then r.held = nil end -- it has a place: what it cannot hold has passed
      for j = 1, #r do
        if r[j].window.drainBy then r[j].window.drainBy(r[j]) end
      end
      charge(r, cost)
      r.changed = not peek
      status = status + 4
    end
    local retry, reset, delay = 0, 0, 0
    for j = 1, #r do
      local s = r[j]
      if refused or r.refused then
        retry = max(retry, wait(s, cost))
      elseif (s.a == 4 or s.a == VARIABLE_QUEUE) and s.most > 0 and not look then
        delay = max(delay, s.window.delay(s, now))
      end
      if s.window.used(s, now) > 0 then reset = max(reset, s.window.ends(s, now) - now) end
    end
    if charged and #r > 0 then
      r.left = r.left - min(cost, r.left)
      if not refused and (not r.refused or answers) and not peek and (cost > 0 or r[1].a ~= IN_FLIGHT) then status = status + 2 end
    end
    if r.strikes then retry, reset = bans.waits(r, retry, reset, cost > 0 and not look and (refused or r.refused)) end
    if not check and (reset > r.keep or retry > r.keep and retry ~= NEVER) then error('a damaged record') end
    if r.banned then
      retry, reset = max(retry, r.ban.ends - now), max(reset, r.ban.ends - now)
      status, last = status + 8 + (r.started and 16 or 0) + (r.extended and 64 or 0), last .. bans.answer(r.ban)
    end
    if r.struck then status = status + 256 end
    if r.skipped then status = status + 32 end
    if r.tellsBan or #r == 0 then status = status + 128 end
    out[i + 1] = pack('>I2BI7I7I7I7I2', status, (r.told or 1) - 1, r.left, retry, reset, delay, r.resets)
  end
  out[#out + 1] = last
  for i = 1, #records do
    if records[i].changed and not peek then save(records[i]) end
  end
  if marker then redis.call('SET', marker, told, 'PX', 60000) end
  return table.concat(out)
end
