-- TwoBucket: two slots as long as the span. k is the number of the newer. A count that
-- is full stays full, is not weighed and gives nothing back. A record has no k: its newest time is
-- in the newer slot.
local BUCKET_FULL = 4294967295

-- bucketGone reports whether the older one has left the window.
local function bucketGone(s, t) return t - s.span + 1 > last(s, s.k - 1) end

windows[2] = {
  load = function(s, body, newest)
    s.width, s.eighths = s.span, false
    s.k, s.older, s.newer = 0, 0, 0
    if body == '' then return end
    s.k = number(s, newest)
    s.older, s.newer = unpack_('>I4I4', body)
  end,
  advance = function(s, t)
    local k = number(s, t)
    if k <= s.k then return end
    if k == s.k + 1 and s.older + s.newer > 0 then s.older = s.newer else s.older = 0 end
    s.k, s.newer = k, 0
  end,
  used = function(s, t)
    if s.older == BUCKET_FULL and not bucketGone(s, t) then return s.older + s.newer end
    return s.newer + weigh(s, s.older, s.k - 1, t)
  end,
  charge = function(s, _, cost)
    s.newer = s.newer + min(cost, BUCKET_FULL - s.newer)
  end,
  till = function(s, _, most)
    if s.newer > most then
      if s.newer == BUCKET_FULL then most = 0 end
      return dropsAt(s, s.newer, s.k, most)
    end
    most = most - s.newer
    if s.older == BUCKET_FULL then most = 0 end
    return dropsAt(s, s.older, s.k - 1, most)
  end,
  ends = function(s, t)
    if s.newer > 0 then return dropsAt(s, s.newer, s.k, 0) end
    if s.older > 0 then return max(t, dropsAt(s, s.older, s.k - 1, 0)) end
    return t
  end,
  save = function(s)
    if s.older + s.newer == 0 then return '' end
    return pack('>I4I4', s.older, s.newer)
  end,
}
