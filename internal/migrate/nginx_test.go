package migrate

import (
	"fmt"
	"testing"
	"time"

	"github.com/lately-go/lately/match"
)

// limit_req with a burst of n and nodelay admits n+1 requests at once, and then one for each
// interval of the rate: the count of nginx (excess) says the same, request by request.
func TestNginxAdmitsAsNginx(t *testing.T) {
	for _, burst := range []int{0, 1, 5, 20} {
		l := limiter(t, Nginx(Source{"nginx.conf", fmt.Appendf(nil, "limit_req_zone $remote_addr zone=z:1m rate=10r/s;\nserver { limit_req zone=z burst=%d nodelay; }\n", burst)}))
		var e match.Event
		e.SetString(match.Client, "192.0.2.1")
		ms, excess, last := int64(1_700_000_000_000), int64(0), int64(0)
		for i := range 400 {
			ms += []int64{0, 0, 0, 40, 100, 250, 0, 7}[i%8]
			// ngx_http_limit_req_lookup, in thousandths of a request.
			next := max(excess-10*(ms-last)+1000, 0)
			if last == 0 {
				next = 0
			}
			admitted := next <= int64(burst)*1000
			if admitted {
				excess, last = next, ms
			}
			if d := l.TakeN(time.UnixMilli(ms), &e, 1); d.Allowed != admitted {
				t.Fatalf("burst %d, request %d: %+v, and nginx has an excess of %d", burst, i, d, next)
			}
		}
	}
}

func FuzzNginx(f *testing.F) {
	seed(f, "nginx.conf")
	f.Fuzz(func(t *testing.T, data []byte) { check(t, Nginx, data) })
}
