package engine

// ListenerStats is what a listener has done so far, the same for each of them.
type ListenerStats struct {
	Connections int    // open now
	Accepted    uint64 // connections
	Refused     uint64 // connections, because there were too many
	Cut         uint64 // connections whose client was too slow, or silent
	Subscribers int    // connections that subscribe to events now

	Requests     uint64 // commands, or HTTP requests
	Errors       uint64 // of these, answered with an error
	Overloaded   uint64 // of these, with the error OVERLOAD
	Unauthorized uint64 // without the role that they need, and unknown tokens
	Panics       uint64 // that ended a connection or a request

	// Latency is of decisions: from when the request had arrived until its
	// answer was handed to the operating system (RESP) or to net/http. All
	// decisions of a pipeline or of one body take as long as it does.
	Latency LatencyCount
}
