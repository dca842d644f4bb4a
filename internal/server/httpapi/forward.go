package httpapi

import (
	"net/http"
	"slices"
	"strings"

	"github.com/lately-go/lately/latelyhttp"
	"github.com/lately-go/lately/match"
	"github.com/lately-go/lately/ratelimit"
	"github.com/lately-go/lately/rules"
)

// A forward is how events are made of what proxies say, for one rules file.
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
// not, or 403 for a proxy that knows no other refusal (?refuse=403). It believes the
// trusted proxies alone, and nobody else is answered: a proxy that the server does
// not know would have all its clients counted as one.
//
// Envoy puts the target behind the path, sends the method and the Host of the request
// as they are, and takes no admission but 200.
func forwardAuth(c *call) error {
	answers := proxyAnswers{http.StatusNoContent, http.StatusTooManyRequests}
	if c.asked != "" {
		answers.admit = http.StatusOK
	} else {
		q, err := c.query()
		if err != nil {
			return err
		}
		if answers.refuse, err = number(q, "refuse", http.StatusTooManyRequests, 400, 599); err != nil {
			return err
		}
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
	case target == "" && c.asked == "":
		return badArg("there is neither X-Original-URI nor X-Forwarded-Uri; a proxy has to say what the client asked for")
	}
	if c.asked != "" {
		if target != "" && target != c.asked || method != "" && method != c.r.Method {
			return badArg("X-Original-URI, X-Forwarded-Uri, X-Original-Method or X-Forwarded-Method: different from the request itself: a proxy must remove what it does not write")
		}
		target, method = c.asked, c.r.Method
	}
	f := c.s.forwarding()
	ev := c.caller.Event()
	f.fill(ev, c.r, client, method, target)
	d, err := c.caller.Check(ev, 1)
	if err != nil && d.Err == nil {
		return err
	}
	return c.tellProxy(f.responder, &d, answers)
}

// authPath is the path of forward-auth.
const authPath = "/v1/auth"

// proxyAnswers is the statuses that tell a proxy what to do.
type proxyAnswers struct{ admit, refuse int }

// fill makes ev the event of the request that a proxy asks about.
func (f *forward) fill(ev *match.Event, r *http.Request, client latelyhttp.Client, method, target string) {
	asked := http.Request{Method: method, Header: r.Header, URL: r.URL}
	if strings.HasPrefix(r.RequestURI, authPath+"/") {
		asked.Host = r.Host
	}
	if host := r.Header["X-Forwarded-Host"]; len(host) > 0 {
		asked.Host = host[0]
	}
	if asked.Method == "" {
		asked.Method = http.MethodGet
	}
	f.fields.Fill(ev, &asked, client)
	ev.SetTargetString(target)
}

// header returns what these fields of r say, and whether they do not contradict each
// other: a proxy writes one of them, and may hand on the others as the client sent
// them.
func header(r *http.Request, names ...string) (said string, ok bool) {
	for _, name := range names {
		for _, v := range r.Header[name] {
			if v == "" {
				continue
			}
			if said != "" && v != said {
				return "", false
			}
			said = v
		}
	}
	return said, true
}

// tellProxy answers with d. A key that is too long is no reason to let it in.
func (c *call) tellProxy(responder *latelyhttp.Responder, d *ratelimit.Decision, answers proxyAnswers) error {
	h := c.w.Header()
	responder.WriteHeaders(h, d)
	if d.Allowed {
		h["Lately-Decision"] = []string{"allowed"}
		c.begun(answers.admit)
		c.w.WriteHeader(answers.admit)
		return nil
	}
	h["Lately-Decision"] = []string{"refused"}
	body, status := responder.AppendProblem(c.out[:0], d)
	c.out = body
	if status == http.StatusTooManyRequests || answers.refuse != http.StatusTooManyRequests {
		status = answers.refuse
	}
	return c.send(status, problemType)
}
