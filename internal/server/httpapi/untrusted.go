package httpapi

import (
	"sync/atomic"
	"time"

	"github.com/lately-go/lately/api"
	"github.com/lately-go/lately/internal/server/engine"
	"github.com/lately-go/lately/latelyhttp"
)

// untrustedEvery is the least time between two warnings about untrusted proxies.
const untrustedEvery = time.Minute

// untrusted logs the refusals of forward-auth: without the setting trusted-proxy a proxy
// refuses the whole site, and does not show why.
type untrusted struct {
	next atomic.Int64 // when the next line may follow, in nanoseconds since 1970
}

// refuse returns the answer to a proxy that is not trusted, and warns about it at most
// once a minute.
func (u *untrusted) refuse(c *call, client latelyhttp.Client) error {
	who := client.String()
	now, next := time.Now().UnixNano(), u.next.Load()
	if now >= next && u.next.CompareAndSwap(next, now+int64(untrustedEvery)) {
		const what = "forward-auth was refused with 403, because it was asked by an address that is not a trusted proxy"
		if client.Addr.IsValid() {
			c.s.Log.Warn(what+"; if this is your proxy, start the server with the flag shown", "peer", who, "flag", "--trusted-proxy "+who)
		} else {
			c.s.Log.Warn(what+"; let the proxy connect over TCP", "peer", who)
		}
	}
	return &engine.Error{Code: api.NoPerm, Message: "forward-auth: " + who + " is not a trusted proxy: add it with the setting trusted-proxy"}
}
