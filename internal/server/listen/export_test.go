package listen

// LatencyBounds are the upper bounds of the buckets of a [Latency].
var LatencyBounds = latencyBounds[:]
