package ratelimit

import (
	"slices"

	"github.com/lately-go/lately/internal/batch"
)

// maxBatch is how many requests a store gets at a time.
const maxBatch = 256

// An open query has no decision yet.
type openQuery struct {
	*batch.Query
	sc *scratch
	d  *Decision
}

// takeBatch is TakeAll for a store other than memory, and at most maxBatch queries.
func (l *Limiter) takeBatch(now int64, queries []batch.Query, dst []Decision) []Decision {
	first := len(dst)
	dst = slices.Grow(dst, len(queries))[:first+len(queries)]
	open := make([]openQuery, len(queries))
	for i := range queries {
		dst[first+i] = Decision{}
		open[i] = openQuery{&queries[i], l.scratch.Get().(*scratch), &dst[first+i]}
	}
	requests := make([]*request, 0, len(open))
	for len(open) > 0 {
		set := l.set.Load()
		requests = requests[:0]
		open = slices.DeleteFunc(open, func(o openQuery) bool {
			if l.begin(o.sc, o.d, set, o.Query, now) {
				return l.completed(o)
			}
			requests = append(requests, o.sc.makeRequest(set, o.Query, now))
			return false
		})
		l.decideBatch(requests)
		open = slices.DeleteFunc(open, func(o openQuery) bool {
			return l.finish(o.d, &o.sc.request, now, o.sc.request.Err) && l.completed(o)
		})
	}
	return dst
}

// decideBatch has the store decide the requests.
func (l *Limiter) decideBatch(requests []*request) {
	if len(requests) == 0 {
		return
	}
	ctx, cancel := l.bounded()
	defer cancel()
	l.store.Decide(ctx, requests)
}

// completed completes o, which has its decision. It returns true.
func (l *Limiter) completed(o openQuery) bool {
	l.complete(o.sc, o.d, o.Query)
	l.scratch.Put(o.sc)
	return true
}
