-- Bans. The state of a record has, if its rule has one, what the rule says of it:
--   strikes    the log of hits or refusals; its n is how many are allowed
--   extends, remember, first, factor, most, jitter, part, steps
-- and, if the key was banned and that is remembered, ban, which BAN describes.
bans = {
  read = function(r, rule, i)
    local flags, n
    flags, r.remember, r.first, r.factor, r.most, r.jitter, r.part, n, i = unpack_('>BI7I7dI7dI4B', rule, i)
    r.extends, r.steps = flags == 1, {}
    for k = 1, n do r.steps[k], i = unpack_('>I7', rule, i) end
    return i
  end,
  -- lasts returns how long the ban is that follows so many.
  lasts = function(r, earlier, part)
    local d = r.first
    if #r.steps > 0 then
      d = r.steps[min(earlier, #r.steps - 1) + 1]
    elseif r.factor > 1 then
      d = min(d * 1000 * r.factor ^ earlier, 1e18) -- nanoseconds, rounded to milliseconds
      d = floor(d / 1e6 + 0.5) * 1000
    end
    d = min(d, r.most)
    return d + floor(d * r.jitter * (part / 4294967296) / 1000) * 1000
  end,
  answer = function(b) return pack('>I7I7I4BI2', b.ends, b.since, b.count, b.byRule, banSum(b, now)) end,
}
-- strike counts a hit or a refusal, or begins a ban if that is one too many. With waits, it returns true
-- instead of beginning it.
bans.strike = function(r, peek, waits)
  local s = r.strikes
  local count = s.window.used(s, now)
  if count < s.n then
    if not peek then
      s.window.charge(s, now, 1)
      r.changed, r.struck = true, true
    end
    if #r == 0 then r.left, r.reset = s.n - count - 1, s.span end
    return
  end
  r.refused, r.tellsBan, r.left = true, true, 0
  if peek or waits then return waits end
  local b, earlier = r.ban, 0
  if b and b.ends + b.remember >= now then earlier = b.count end
  r.ban = {
    byRule = 1, since = now, ends = now + bans.lasts(r, earlier, r.part), count = min(earlier + 1, 33554431),
    remember = r.remember, part = r.part,
  }
  s.window.load(s, '')
  r.changed, r.started, r.banned = true, true, true
end
-- holds notes that the ban of a record holds, and restarts it if the rule says so.
bans.holds = function(r, hit)
  local b = r.ban
  if hit and r.extends and b.byRule == 1 then
    local ends = now + bans.lasts(r, max(b.count, 1) - 1, b.part)
    if ends > b.ends then
      b.ends, r.changed, r.extended = ends, true, true
    end
  end
  r.refused, r.banned, r.tellsBan, r.left = true, true, true, 0
end
-- waits adds to the waiting times of a record what its strikes ask for.
bans.waits = function(r, retry, reset, again)
  local s = r.strikes
  local count = s.window.used(s, now)
  if s.a == HITS and again then
    if s.n == 0 then
      retry = NEVER
    elseif count == s.n then
      retry = max(retry, s.window.till(s, now, s.n - 1) - now)
    end
  end
  if #r == 0 and not r.banned then
    if count > 0 then reset = max(reset, s.window.ends(s, now) - now) end
    reset = max(reset, r.reset or 0)
  end
  return retry, reset
end
