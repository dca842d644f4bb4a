-- Returns parts of the state. KEYS: the state. ARGV: the part after which to begin.
-- Returns the last of them 8 + 8 | the parts, each with its length 4: f, p or e for what it is, and it.
local state = KEYS[1]
local found, out, last = redis.call('XRANGE', state, '(' .. ARGV[1], '+', 'COUNT', 8), {}, ARGV[1]
for i = 1, #found do
  local part = string.sub(found[i][2][1], 1, 1) .. found[i][2][2]
  out[i] = struct.pack('>I4', #part) .. part
  last = found[i][1]
end
local ms, n = parts(last)
return struct.pack('>I8I8', ms, n) .. table.concat(out)
