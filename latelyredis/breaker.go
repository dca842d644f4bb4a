package latelyredis

import (
	"context"
	"errors"
	"sync/atomic"
)

// ErrAway is the error of calls that are not sent, since Redis has not answered before. The
// store goes on asking Redis every 250 ms, and sends calls again as soon as it answers.
var ErrAway = errors.New("latelyredis: Redis does not answer: calls fail at once until it does")

// A breaker makes calls fail at once after several in a row were not answered: they would
// wait in vain for their deadlines, and the client keeps a goroutine for each of them.
type breaker struct {
	failed atomic.Int32
}

// breakAfter is how many calls in a row are not answered until the breaker opens.
const breakAfter = 20

// open reports whether calls are to fail.
func (b *breaker) open() bool { return b.failed.Load() >= breakAfter }

// note counts what came of calls that were sent together: an answer to any, also an error of
// the server, closes the breaker.
func (b *breaker) note(calls []*call) {
	lost := false
	for _, c := range calls {
		if _, answered := errors.AsType[*ServerError](c.err); c.err == nil || answered {
			if b.failed.Load() > 0 {
				b.failed.Store(0)
			}
			return
		}
		lost = lost || !errors.Is(c.err, context.Canceled)
	}
	if lost {
		b.failed.Add(1)
	}
}
