package latelyhttp

import (
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lately-go/lately/internal/http/ratelimitheader"
	"github.com/lately-go/lately/internal/test/must"
	"github.com/lately-go/lately/internal/test/randtest"
)

// TestWaitIsExact compares Retry-After and t of refusals with the time until a request fits, by the definition of a window.
// Both are sufficient; up to 128 a minute they are exact, and so never above w, and above 128 they are longer by at most a
// slot.
func TestWaitIsExact(t *testing.T) {
	rnd := randtest.New(t)
	for _, n := range []uint64{1, 60, 100, 128, 129, 1000} {
		synctest.Test(t, func(t *testing.T) {
			slot := time.Duration(0)
			if n > 128 {
				slot = time.Second
			}
			h := mustNew(t, mustLimiter(t, limited(t, "one", n, time.Minute)), Config{}).Wrap(new(ok))
			var allowed []time.Time
			refused, above := 0, 0
			for range 10*n + 1000 {
				w := do(h, request("192.0.2.1:1"))
				if w.Code == 200 {
					allowed = append(allowed, time.Now())
					time.Sleep(time.Duration(rnd.Int64N(int64(time.Minute) / int64(n))))
					continue
				}
				refused++
				needed := time.Until(allowed[len(allowed)-int(n)].Add(time.Minute))
				told := header(t, w, "Retry-After")
				seconds := must.Get(strconv.ParseInt(told, 10, 64))(t)
				least, most := ratelimitheader.Seconds(max(needed, 0)), ratelimitheader.Seconds(max(needed, 0)+slot)
				if seconds < least || seconds > most {
					t.Fatalf("%d a minute: Retry-After is %s; needed are %v, with a slot of %v", n, told, needed, slot)
				}
				if left := header(t, w, "RateLimit"); !strings.HasSuffix(left, ";t="+told) {
					t.Fatalf("%d a minute: RateLimit is %s beside Retry-After %s", n, left, told)
				}
				if seconds > 60 {
					above++
				}
				if rnd.IntN(2) == 0 {
					time.Sleep(time.Duration(seconds) * time.Second)
					if w := do(h, request("192.0.2.1:1")); w.Code != 200 {
						t.Fatalf("%d a minute: refused after the Retry-After of %s", n, told)
					}
					allowed = append(allowed, time.Now())
				} else {
					time.Sleep(time.Duration(rnd.Int64N(int64(time.Minute) / int64(n))))
				}
			}
			if slot == 0 && above > 0 {
				t.Errorf("%d a minute: Retry-After was above w=60 %d times", n, above)
			}
			if refused < 20 {
				t.Errorf("%d a minute: %d refused: the test has no teeth", n, refused)
			}
		})
	}
}
