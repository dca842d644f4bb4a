-- Passes on what nodes have counted. KEYS: the log, the state, the nodes that have all counts,
-- the time, and who is to write the state. ARGV: the name of the node; whether it has all counts
-- (1), wants them (0), or begins with its own if nobody has any (2); the newest entry of the log
-- that it has; what time it is at least, by what it knows; and its entries for the log, if it has all.
-- Returns the time 7 | what comes of it 1 | whether it is to write the state, or there are others to
-- wait for 1 | the newest entry that it has by now 8 + 8 | entries, each with its length 4.
local log, state, nodes, clock, wanted = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5]
local node, has, have = ARGV[1], ARGV[2], ARGV[3]
local GOES_ON, ALONE, READY, WAIT, MISSED = 0, 1, 2, 3, 4
local LIVES = 5000 -- ms, how long a node counts that is not heard of
local text = '%.0f'

-- This time does not go back when the clock does, and goes on by what nodes know when the clock
-- was set back or the time is lost.
local was, at, sum = string.match(redis.call('GET', clock) or '', '^(%d+) (%d+) (%d+)$')
if was and (was + at) % 65521 ~= tonumber(sum) then was = nil end -- a damaged time would be that of all nodes for good
local back = was and now < tonumber(was)
local jumped = was and math.abs(now - tonumber(was)) > LIVES * 1000 -- nodes only seem to be gone
at = was and tonumber(at) + math.max(now - tonumber(was), 0) or now
if back or tonumber(ARGV[4]) > at + 1000000 then at = math.max(at, tonumber(ARGV[4])) end
redis.call('SET', clock, text:format(now) .. ' ' .. text:format(at) .. ' ' .. (now + at) % 65521, 'PX', 2592000000)

local function first(found) return found[1] and found[1][1] or nil end
local function add(entry) redis.call('XADD', log, 'MAXLEN', 1024, '*', 'e', entry) end
local function newest() return first(redis.call('XREVRANGE', log, '+', '-', 'COUNT', 1)) end
local function kept(id) return first(redis.call('XRANGE', log, id, id)) end

redis.call('ZREMRANGEBYSCORE', nodes, '-inf', text:format(now - LIVES * 1000))
redis.call('ZREMRANGEBYSCORE', nodes, text:format(now + 1), '+inf') -- the clock was set back
local what, others, write, out = GOES_ON, false, false, {}
if has == '2' and not jumped and redis.call('ZCARD', nodes) == 0 then
  what, has = ALONE, '1'
  if not newest() then add('') end -- so that there is an entry to go on from
  have = have == '0-0' and newest() or '0-0' -- who had all before knows what it has of the log
elseif has == '1' and not kept(have) then
  local oldest = first(redis.call('XRANGE', log, '-', '+', 'COUNT', 1))
  if not oldest or before(have, oldest) then
    what, has = MISSED, '0'
  else
    have = '0-0' -- a failover has lost what came last: nodes know what they have of the rest
  end
end
if has ~= '1' then redis.call('ZREM', nodes, node) end
if has == '1' then
  redis.call('ZADD', nodes, text:format(now), node)
  redis.call('PEXPIRE', nodes, LIVES)
  for i = 5, #ARGV do add(ARGV[i]) end
  redis.call('PEXPIRE', log, 600000)
  local found = redis.call('XRANGE', log, '(' .. have, '+', 'COUNT', 16)
  for i = 1, #found do
    local entry = found[i][2][2]
    out[i] = struct.pack('>I4', #entry) .. entry
    have = found[i][1]
  end
  local writer = redis.call('GET', wanted)
  if writer == '' or writer == node then -- it may not have got the answer that it is to write
    redis.call('SET', wanted, node, 'PX', 5000)
    write = true
  end
elseif what ~= MISSED then
  local last = redis.call('XREVRANGE', state, '+', '-', 'COUNT', 1)[1]
  if last and last[2][1] == 'end' and kept(last[2][2]) then
    what, have = READY, last[2][2]
  else
    what = WAIT
    if redis.call('GET', wanted) == node then redis.call('DEL', wanted) end
    redis.call('SET', wanted, '', 'NX', 'PX', 5000)
    others = jumped or redis.call('ZCARD', nodes) > 0
  end
end
local ms, n = parts(have)
return struct.pack('>I7BBI8I8', at, what, (write or others) and 1 or 0, ms, n) .. table.concat(out)
