package limits

import (
	"context"
	"math"
	"net/http"
	"sync"
	"time"

	"github.com/go-chi/httprate"
)

// httpCounter is the counting half of httprate: its limiter's calls of its counter, and its arithmetic, but not its lock
// around them.
type httpCounter struct {
	counter httprate.LimitCounter
	limit   int
}

func newHTTPCounter(_ int, limit uint64) limiter {
	c := httprate.NewLocalLimitCounter(day)
	c.Config(int(limit), day)
	return httpCounter{c, int(limit)}
}

func (w httpCounter) Take(key string) bool {
	now := time.Now().UTC()
	current := now.Truncate(day)
	n, before, err := w.counter.Get(key, current, current.Add(-day))
	if err != nil {
		panic(err)
	}
	rate := float64(before)*float64(day-now.Sub(current))/float64(day) + float64(n)
	if int(math.Round(rate))+1 > w.limit {
		return false
	}
	if err := w.counter.Increment(key, current); err != nil {
		panic(err)
	}
	return true
}

// httpLimiter is httprate's own decision, which fills in header fields. They go
// into maps that are used again.
type httpLimiter struct {
	*httprate.RateLimiter
	request *http.Request
	writers sync.Pool
}

func newHTTPLimiter(_ int, limit uint64) limiter {
	r, err := http.NewRequestWithContext(context.Background(), http.MethodGet, "/", nil)
	if err != nil {
		panic(err)
	}
	return &httpLimiter{
		RateLimiter: httprate.NewRateLimiter(int(limit), day),
		request:     r,
		writers:     sync.Pool{New: func() any { return header{} }},
	}
}

func (w *httpLimiter) Take(key string) bool {
	h := w.writers.Get().(header)
	defer w.writers.Put(h)
	return !w.OnLimit(h, w.request, key)
}

// A header is a response of which only the header is read.
type header http.Header

func (h header) Header() http.Header         { return http.Header(h) }
func (h header) Write(p []byte) (int, error) { return len(p), nil }
func (h header) WriteHeader(int)             {}
