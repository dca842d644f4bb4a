-- Notes that a node is there, and returns what has changed in the list of bans.
-- KEYS: the changes, the nodes and when a node has given something back. ARGV: the newest
-- change that the node has, 0-0 for none, or nothing if it has not read the list; the name of
-- the node; and 1 if it has given something back since it was here last.
-- Returns the time 7 | number of nodes 4 | state 1 | the newest change 8 + 8 | when a node has
-- given something back 7 | the changes.
local changes, nodes, returns = KEYS[1], KEYS[2], KEYS[3]
local have, node = ARGV[1], ARGV[2]
local CHANGED, TRIMMED, LOST = 0, 1, 2
local LIVES = 5000 -- ms, how long a node counts that is not heard of
local KEPT = 2592000000 -- ms, so that a node which ended during an outage is found afterwards

redis.call('ZADD', nodes, string.format('%.0f', now), node)
local ended = redis.call('ZREMRANGEBYSCORE', nodes, '-inf', string.format('%.0f', now - LIVES * 1000)) > 0
redis.call('ZREMRANGEBYSCORE', nodes, string.format('(%.0f', now), '+inf') -- the clock was set back
redis.call('PEXPIRE', nodes, KEPT)

-- Without a time, all keys may be gone. A node that has ended may have given something back and not told.
local gave = tonumber(redis.call('GET', returns) or nil)
if not gave or ended or ARGV[3] == '1' then
  gave = math.max(now, (gave or 0) + 1) -- no two of these times are equal
  redis.call('SET', returns, string.format('%.0f', gave), 'PX', KEPT)
end

local function first(found) return found[1] and found[1][1] or '0-0' end

local newest, state, out = first(redis.call('XREVRANGE', changes, '+', '-', 'COUNT', 1)), CHANGED, {}
if have == '' then
  state = TRIMMED
elseif have ~= newest then
  if have ~= '0-0' and first(redis.call('XRANGE', changes, have, have)) ~= have then
    local oldest = first(redis.call('XRANGE', changes, '-', '+', 'COUNT', 1))
    state = before(have, oldest) and TRIMMED or LOST
  else
    local found = redis.call('XRANGE', changes, '(' .. have, '+', 'COUNT', 1000)
    for i = 1, #found do
      local of, detail = found[i][2][1], found[i][2][2]
      out[i] = struct.pack('>I4c0I4c0', #of, of, #detail, detail)
    end
    newest = found[#found][1]
  end
end
local ms, n = parts(newest)
return struct.pack('>I7I4BI8I8I7', now, redis.call('ZCARD', nodes), state, ms, n, gave) .. table.concat(out)
