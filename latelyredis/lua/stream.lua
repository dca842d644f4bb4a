-- parts returns the two numbers of the id of an entry of a stream, and before whether a is the earlier of two.
local function parts(id)
  local ms, n = string.match(id, '(%d+)-(%d+)')
  return tonumber(ms), tonumber(n)
end
local function before(a, b)
  local ams, an = parts(a)
  local bms, bn = parts(b)
  return ams < bms or ams == bms and an < bn
end
