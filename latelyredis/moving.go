package latelyredis

import (
	"time"
)

// While a slot of a cluster moves from one node to another, its keys move one by one. The
// client follows MOVED and ASK. If the keys of a subject are on both nodes, or one of several is on
// none, either node answers TRYAGAIN, and has counted nothing: a call about records is sent
// again until the slot has moved. The list of bans is brought up to date later.
const (
	// movingWait is how long a call waits before it is sent again.
	movingWait = 2 * time.Millisecond

	// movingWaits is how often at most, for a context that does not end before: a
	// slot may move for minutes.
	movingWaits = 500
)

// moves reports whether c is about records, and was not judged since their slot moves.
func (c *call) moves() bool { return len(c.rules) > 0 && codeIs(c.err, "TRYAGAIN") }
