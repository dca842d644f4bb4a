-- The windows of Fixed and Calendar, from first to before over. That of a calendar is
-- one of two periods that the caller sends, p0 to p1 and p1 to p2. The caller does not know the periods of another calendar,
-- nor when the one began that is stored; what it charges there counts for a span.
local period = {
  load = function(s, body)
    s.first, s.over, s.count = 0, 0, 0
    if body == '' then return end
    s.over, s.count = unpack_(#body == 11 and '>I7I4' or '>I7I7', body)
    if s.a == FIXED then
      s.first = s.over - s.span
    else
      s.first = s.over == s.p1 and s.p0 or s.over == s.p2 and s.p1 or s.over
    end
  end,
  advance = function(s, t)
    if t >= s.over then s.count = 0 end
  end,
  used = function(s) return s.count end,
  charge = function(s, t, cost)
    if s.count == 0 then
      if not s.p0 then
        s.first, s.over = t, t + s.span
      elseif t < s.p0 then
        return -- carried from another algorithm: it is over
      elseif t < s.p1 then
        s.first, s.over = s.p0, s.p1
      else
        s.first, s.over = s.p1, s.p2
      end
    end
    s.count = min(s.count + cost, MOST)
  end,
  till = function(s) return s.over end,
  ends = function(s, t)
    if s.count == 0 then return t end
    return s.over
  end,
  save = function(s)
    if s.count == 0 then return '' end
    return pack(s.count <= 4294967295 and '>I7I4' or '>I7I7', s.over, s.count)
  end,
}
windows[FIXED], windows[CALENDAR] = period, period
