package httpapi

import (
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/lately-go/lately/api"
	"github.com/lately-go/lately/internal/server/engine"
	"github.com/lately-go/lately/latelyhttp"
	"github.com/lately-go/lately/match"
	"github.com/lately-go/lately/ratelimit"
	"github.com/lately-go/lately/rules"
)

// A forward makes events of the requests of proxies, for one rules file.
type forward struct {
	file      *rules.File
	fields    *latelyhttp.EventFields
	responder *latelyhttp.Responder
}

// forwarding returns the forward of the rules in force.
func (s *Server) forwarding() *forward {
	file, f := s.Engine.Rules(), s.forward.Load()
	if f == nil || f.file != file {
		// The path is that of the client's request and not of ours; protocol and
		// pattern are not known of it.
		names := slices.DeleteFunc(file.Fields(), func(name string) bool {
			return slices.Contains([]string{"path", "object", "query", "protocol", "pattern"}, name)
		})
		f = &forward{file, latelyhttp.NewEventFields(names), latelyhttp.NewResponder(file.Limits)}
		s.forward.Store(f)
	}
	return f
}

// forwardAuth answers a proxy that asks whether to serve a request: 204 if so, 429 if
// not, or the status that the query asks for: nginx accepts no other refusal than 403. It
// answers trusted proxies only: all clients of an unknown proxy would be counted as one.
//
// Envoy appends the target to the path, sends the method and the Host of the request
// itself, and accepts no other admission than 200.
func forwardAuth(c *call) (err error) {
	admit, refuse := http.StatusNoContent, http.StatusTooManyRequests
	if c.target != "" {
		admit = http.StatusOK
	} else if refuse, err = c.number("refuse", refuse, 400, 599); err != nil {
		return err
	}
	client := c.s.identity.Client(c.r)
	if client.Source == latelyhttp.FromPeer || client.Source == latelyhttp.Unknown {
		return c.s.untrusted.refuse(c, client)
	}
	target, ok := header(c.r, "X-Original-Uri", "X-Forwarded-Uri")
	method, ok2 := header(c.r, "X-Original-Method", "X-Forwarded-Method")
	switch {
	case !ok || !ok2:
		return badArg("X-Original-URI and X-Forwarded-Uri, or X-Original-Method and X-Forwarded-Method, say different things, so that one may be the client's own; a proxy has to remove what it does not write")
	case target == "" && c.target == "":
		return badArg("there is neither X-Original-URI nor X-Forwarded-Uri; a proxy has to say what the client asked for")
	}
	if c.target != "" {
		if target != "" && target != c.target || method != "" && method != c.r.Method {
			return badArg("X-Original-URI, X-Forwarded-Uri, X-Original-Method or X-Forwarded-Method: different from the request itself: a proxy must remove what it does not write")
		}
		target, method = c.target, c.r.Method
	}
	f := c.s.forwarding()
	ev := c.engine.Event()
	f.fill(ev, c.r, client, method, target)
	d, err := c.engine.Check(ev, 1)
	if err != nil && d.Err == nil {
		return err
	}
	return c.answerProxy(f.responder, &d, admit, refuse)
}

// fill makes ev the event of the request that a proxy asks about.
func (f *forward) fill(ev *match.Event, r *http.Request, client latelyhttp.Client, method, target string) {
	request := http.Request{Method: method, Header: r.Header, URL: r.URL}
	if strings.HasPrefix(r.RequestURI, authPath+"/") {
		request.Host = r.Host
	}
	if host := r.Header["X-Forwarded-Host"]; len(host) > 0 {
		request.Host = host[0]
	}
	if request.Method == "" {
		request.Method = http.MethodGet
	}
	f.fields.Fill(ev, &request, client)
	ev.SetTargetString(target)
}

// header returns the value of these fields of r. It reports false if they contradict each
// other: a proxy writes one of them, and may forward others that the client has sent.
func header(r *http.Request, names ...string) (value string, ok bool) {
	for _, name := range names {
		for _, v := range r.Header[name] {
			if v == "" {
				continue
			}
			if value != "" && v != value {
				return "", false
			}
			value = v
		}
	}
	return value, true
}

// answerProxy answers with d. A request whose key is too long is refused.
func (c *call) answerProxy(responder *latelyhttp.Responder, d *ratelimit.Decision, admit, refuse int) error {
	h := c.w.Header()
	responder.WriteHeaders(h, d)
	if d.Allowed {
		h["Lately-Decision"] = []string{"allowed"}
		c.begun(admit)
		c.w.WriteHeader(admit)
		return nil
	}
	h["Lately-Decision"] = []string{"refused"}
	body, status := responder.AppendProblem(c.out[:0], d)
	c.out = body
	if status == http.StatusTooManyRequests || refuse != http.StatusTooManyRequests {
		status = refuse
	}
	return c.send(status, problemType)
}

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
