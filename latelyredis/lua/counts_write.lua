-- Adds a part to the state that a node writes. KEYS: the state, and who is to write it.
-- ARGV: the name of the node; what the part is: first, part or end; and the part, or the
-- entry of the log that the state goes up to. Returns whether the node is to go on.
local state, wanted = KEYS[1], KEYS[2]
local node, what, data = ARGV[1], ARGV[2], ARGV[3]
if redis.call('GET', wanted) ~= node then return '0' end
redis.call('SET', wanted, node, 'PX', 5000)
if what == 'first' then redis.call('DEL', state) end
redis.call('XADD', state, '*', what, data)
redis.call('PEXPIRE', state, 10000)
if what == 'end' then redis.call('DEL', wanted) end
return '1'
