-- Times are microseconds since 1970. All numbers are integers below 2^53, which a
-- double holds exactly; what could be more goes through muldiv.
local pack, unpack_, byte, sub, rep = struct.pack, struct.unpack, string.byte, string.sub, string.rep
local floor, ceil, max, min = math.floor, math.ceil, math.max, math.min

local NEVER = 2 ^ 55    -- a waiting time that has no end
local MOST = 2 ^ 53 - 1 -- the largest count
local SLACK = 100000    -- how far the clock may go back before records are moved
local LONGEST = 315360000000000 -- the longest span, ten years

local SLIDING, TWO_BUCKET, FIXED, CALENDAR, IN_FLIGHT = 0, 2, 5, 6, 7
local VARIABLE, VARIABLE_QUEUE = 8, 9 -- GCRA and LeakyBucket with an N that events bring
local SLOTS, NOTHING = 12, 13 -- of Sliding above 128, of a limit of 0
local HITS, REFUSALS = 10, 11 -- what a ban has counted

-- The windows by algorithm. Each is a table of functions on a state s, which has the
-- fields of its limit (n, span, most) and what load reads from a body:
--   load(s, body, newest)    the newest time of its record; body is '' if nothing is counted
--   advance(s, t)            removes what has left at t
--   used(s, t)
--   charge(s, t, cost)
--   till(s, t, most)         when no more than most is used, which is less than used
--   ends(s, t)               when nothing is used, or t
--   save(s)                  returns the body
--   drainBy(s)               of a bucket whose N is data: it drains by n from now on
-- Those that corrections need are in files of their own:
--   refund(s, t, at, cost)   takes back what was charged at that time; returns how much
--   oldest(s, t, cost)       takes back the oldest; returns how much
--   each(s, t)               returns times and counts, oldest first
--   clamp(s, t)              moves what is later than t to t
--   ordered(s, t)            of a log: whether its times are in order, and none is later than t
local windows = {}

-- check, repair and readLimits are nil in a script that only decides, and bans if no rule of it has one.
local check, repair, readLimits, bans

-- muldiv returns a*b/c rounded down, and the rest. c is below 2^49, and a, b and the
-- quotient are below 2^53.
local function muldiv(a, b, c)
  local p = a * b
  if p <= MOST then
    local q = floor(p / c)
    return q, p - q * c
  end
  local whole = floor(a / c)
  local part, digits = a - whole * c, {}
  whole = whole * b
  while b > 0 do
    local high = floor(b / 8)
    digits[#digits + 1] = b - high * 8
    b = high
  end
  local q, r = 0, 0
  for i = #digits, 1, -1 do
    local p = r * 8 + digits[i] * part -- below 15c
    local d = floor(p / c)
    q, r = q * 8 + d, p - d * c
  end
  return whole + q, r
end
