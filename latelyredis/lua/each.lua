
-- Returns the number, and the answers about all subjects, each behind its length 4. What fails is left to the
-- script repair, and the others are decided nevertheless.
local out, length, size = {callNumber}, '', 0
for i = 1, #heads / 8 do
  local done, answer = pcall(decide, i)
  if not done then answer = 'repair' end
  if #answer ~= size then length, size = pack('>I4', #answer), #answer end
  out[2 * i], out[2 * i + 1] = length, answer
end
return table.concat(out)
