-- A limit of 0 counts nothing.
windows[NOTHING] = {
  load = function() end,
  advance = function() end,
  used = function() return 0 end,
  charge = function() end,
  till = function(_, t) return t end,
  ends = function(_, t) return t end,
  save = function() return '' end,
}
