-- Returns what INFO says about memory.
return redis.call('INFO', 'memory')
