windows[NOTHING].refund = function() return 0 end
windows[NOTHING].oldest = function() return 0 end
windows[NOTHING].each = function() return {}, {} end
windows[NOTHING].clamp = function() end
