package httpapi

import (
	"cmp"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/lately-go/lately/api"
	"github.com/lately-go/lately/internal/event/eventfield"
	"github.com/lately-go/lately/internal/event/httpfield"
	"github.com/lately-go/lately/internal/http/middleware"
	"github.com/lately-go/lately/internal/http/ratelimitheader"
	"github.com/lately-go/lately/internal/http/refusal"
	"github.com/lately-go/lately/internal/server/apierror"
	"github.com/lately-go/lately/internal/server/engine"
	"github.com/lately-go/lately/latelyhttp"
	"github.com/lately-go/lately/match"
	"github.com/lately-go/lately/ratelimit"
	"github.com/lately-go/lately/rules"
)

// A forward makes events of the requests of proxies, for one rules file.
type forward struct {
	file     *rules.File
	fields   middleware.Fields[*httpfield.Source]
	policies ratelimitheader.Policies
}

// forwarding returns the forward of the rules in force.
func (s *Server) forwarding() *forward {
	file, f := s.Engine.Rules(), s.forward.Load()
	if f == nil || f.file != file {
		// Path fields come from the original request, whose protocol and pattern are unknown.
		names := slices.DeleteFunc(file.Fields(), func(name string) bool {
			return slices.Contains([]string{"path", "object", "query", "protocol", "pattern"}, name)
		})
		fields, _ := middleware.NewFields(names, file.Limits.Internal().Sources(), httpfield.Finder(nil)) // others are absent from every event
		f = &forward{file, fields, ratelimitheader.New(file.Limits, false)}
		s.forward.Store(f)
	}
	return f
}

// forwardAuth answers a proxy that asks whether to serve a request: 204 if so, 429 if
// not, or the status that the query asks for: nginx accepts no other refusal than 403, and 401, which is
// the answer to a request without a field. It
// answers trusted proxies only: all clients of an unknown proxy would be counted as one.
//
// Envoy appends the target to the path, sends the method and the Host of the request
// itself, and takes only 200 for a permission.
func forwardAuth(c *call) (err error) {
	allow, refuse, sent := http.StatusNoContent, http.StatusTooManyRequests, ""
	if c.target != "" {
		allow, sent = http.StatusOK, c.r.Method
	} else if refuse, err = c.number("refuse", refuse, 400, 599); err != nil {
		return err
	}
	report, err := c.number("outcome_ms", 0, 1, int(maxHold))
	if err != nil {
		return err
	}
	f, ev, err := c.forwarded(sent)
	if err != nil {
		return err
	}
	d, err := c.session.Check(ev, 1, engine.Terms{Report: time.Duration(report) * time.Millisecond})
	if err != nil && d.Err == nil {
		return err
	}
	if id, _ := c.session.ID(); err == nil && len(id) > 0 {
		c.w.Header()["Lately-Decision-Id"] = []string{string(id)}
	}
	return c.answerProxy(f, &d, allow, refuse)
}

// forwardOutcome counts the answer to a request that a proxy has asked about by forwardAuth. With the id of the decision, whoever has it
// may report: only the server can have made it. The query, which is the proxy's own,
// wins over a header, which the client may have sent: an error would let the client keep its answers from being counted.
func forwardOutcome(c *call) error {
	terms := engine.Terms{Outcome: true, ByID: c.query.Has("id"), ID: c.query.Get("id")}
	ev := c.session.Event()
	if !terms.ByID {
		var err error
		if _, ev, err = c.forwarded(""); err != nil {
			return err
		}
	}
	for _, answer := range []struct{ field, header string }{
		{"status", "X-Original-Status"}, {"size", "X-Original-Size"}, {eventfield.Duration, "X-Original-Duration"},
	} {
		value, ok := c.query.Get(answer.field), true
		if value == "" {
			value, ok = header(c.r, "", answer.header)
		}
		if !ok {
			return badArg("%s: several, which contradict each other: the proxy must overwrite it", answer.header)
		}
		ev.SetNamedString(answer.field, value)
	}
	if _, err := c.session.Check(ev, 1, terms); err != nil {
		return err
	}
	c.begun(http.StatusNoContent)
	c.w.WriteHeader(http.StatusNoContent)
	return nil
}

// forwarded returns the event of the request that a trusted proxy asks about, and the forward that has filled it
// in. sent is the method of that request, if the proxy has asked by the same.
func (c *call) forwarded(sent string) (*forward, *match.Event, error) {
	client := c.s.identity.Client(c.r)
	if !client.Proxied() {
		c.w.Header()["Lately-Decision"] = []string{"untrusted proxy"}
		return nil, nil, c.s.refuseProxy(client)
	}
	target, ok := header(c.r, c.target, "X-Original-Uri", "X-Forwarded-Uri")
	method, ok2 := header(c.r, sent, "X-Original-Method", "X-Forwarded-Method")
	switch {
	case !ok || !ok2:
		return nil, nil, badArg("X-Original-URI, X-Forwarded-Uri, X-Original-Method, X-Forwarded-Method: they contradict each other or the request itself: a proxy must remove the fields that it does not write")
	case target == "":
		return nil, nil, badArg("X-Original-URI and X-Forwarded-Uri: both missing: a proxy must send the target of the request in one of them")
	}
	_, query, _ := strings.Cut(target, "?")
	request := http.Request{Method: cmp.Or(method, http.MethodGet), Header: c.r.Header, URL: &url.URL{RawQuery: query}}
	if c.target != "" {
		request.Host = c.r.Host
	}
	if host := c.r.Header["X-Forwarded-Host"]; len(host) > 0 {
		request.Host = host[0]
	}
	f, ev := c.s.forwarding(), c.session.Event()
	f.fields.Fill(ev, &httpfield.Source{Request: &request, Client: client})
	ev.SetTarget(target)
	return f, ev, nil
}

// header returns what value, unless it is "", and these fields of r agree on. It reports
// false if they contradict each other: a proxy writes one of the fields, and may forward
// others that the client has sent.
func header(r *http.Request, value string, names ...string) (string, bool) {
	for _, name := range names {
		for _, v := range r.Header[name] {
			if v != "" && value != "" && v != value {
				return "", false
			}
			value = cmp.Or(v, value)
		}
	}
	return value, true
}

// answerProxy answers with d. A request whose key is too long is refused. One that lacks a field gets 401.
func (c *call) answerProxy(f *forward, d *ratelimit.Decision, allow, refuse int) error {
	h, outcomes := c.w.Header(), f.policies.Deciding(nil, d)
	f.policies.WriteHeader(h, nil, outcomes, d)
	if d.Allowed {
		h["Lately-Decision"] = []string{"allowed"}
		c.begun(allow)
		c.w.WriteHeader(allow)
		return nil
	}
	h["Lately-Decision"] = []string{"refused"}
	refused := refusal.Refusal{Set: f.file.Limits, Policies: &f.policies, Decision: *d, Outcomes: outcomes}
	refused.WriteHeader(h, 0)
	var page *refusal.Page
	if c.s.config.RefusalPage != nil {
		page = c.s.config.RefusalPage()
	}
	body, media, status := refused.AppendBody(c.out[:0], page, c.r.Header, h)
	c.out = body
	if d.Missing == "" && (status == http.StatusTooManyRequests || refuse != http.StatusTooManyRequests) {
		status = refuse
	}
	if media != problemType[0] { // a page of the site of the proxy, with styles and pictures
		delete(h, "Content-Security-Policy")
	}
	return c.send(status, []string{media})
}

// refuseProxy returns the answer to a proxy that is not trusted, with the flag that is missing. It
// logs a warning at most once a minute: without that flag a proxy refuses the whole site, and few
// proxies show the body of the answer.
func (s *Server) refuseProxy(client latelyhttp.Client) error {
	who := client.String()
	mend := "if it is your proxy, start the server with --trusted-proxy " + who
	if !client.Addr.IsValid() {
		mend = "if it is your proxy, start the server with --trusted-proxy unix"
	}
	now, next := time.Now().UnixNano(), s.untrusted.Load()
	if now >= next && s.untrusted.CompareAndSwap(next, now+int64(time.Minute)) {
		s.Log.Warn("forward-auth was refused with 403, because the sender is not a trusted proxy; "+mend, "peer", who)
	}
	return apierror.New(api.NoPerm, "forward-auth: %s is not a trusted proxy: %s", who, mend)
}
