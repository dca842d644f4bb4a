package latelyhttp

import (
	"encoding/json"
	"errors"
	"math/rand/v2"
	"net/http"
	"strconv"
	"time"

	"github.com/lately-go/lately/internal/middleware"
	"github.com/lately-go/lately/internal/ratelimitheader"
	"github.com/lately-go/lately/ratelimit"
)

// A problem is a registered problem type, with the title that goes with it.
type problem struct {
	status      int
	kind, title string
}

// The types are those that draft-ietf-httpapi-ratelimit-headers-11 registers.
const problemTypes = "https://iana.org/assignments/http-problem-types#"

var (
	quotaExceeded   = problem{http.StatusTooManyRequests, problemTypes + "quota-exceeded", "Request cannot be satisfied as assigned quota has been exceeded"}
	abnormalUsage   = problem{http.StatusTooManyRequests, problemTypes + "abnormal-usage-detected", "Request not satisfied due to detection of abnormal request pattern"}
	reducedCapacity = problem{http.StatusServiceUnavailable, problemTypes + "temporary-reduced-capacity", "Request cannot be satisfied due to temporary server capacity constraints"}
	fieldMissing    = problem{http.StatusUnauthorized, "about:blank", http.StatusText(http.StatusUnauthorized)}
	fieldTooLarge   = problem{http.StatusRequestHeaderFieldsTooLarge, "about:blank", http.StatusText(http.StatusRequestHeaderFieldsTooLarge)}
)

// problemOf returns the problem type of a refusal.
func problemOf(d *ratelimit.Decision) *problem {
	switch {
	case !d.BannedUntil.IsZero():
		return &abnormalUsage
	case d.Missing != "":
		return &fieldMissing
	case !ratelimitheader.StoreFailed(d):
		return &quotaExceeded
	case errors.Is(d.Err, ratelimit.ErrKeyTooLong):
		return &fieldTooLarge
	}
	return &reducedCapacity
}

// refuse answers r, which v refuses.
func (m *Middleware) refuse(w http.ResponseWriter, r *http.Request, p *plan, s *state, v *Verdict) {
	h := w.Header()
	if d := v.Decision.RetryAfter; 0 < d && d < ratelimit.Never {
		wait := ratelimitheader.Seconds(d) + rand.Int64N(int64(m.config.Jitter/time.Second)+1)
		h["Retry-After"] = []string{strconv.FormatInt(wait, 10)}
	}
	writeChallenge(h, p.Set, &v.Decision)
	h["Cache-Control"] = []string{"no-store"}
	if m.config.OnRefused != nil {
		m.config.OnRefused(w, r, *v)
		return
	}
	problem, media := problemOf(&v.Decision), problemMedia
	if m.config.Page != nil && prefersPage(r.Header) {
		media = pageMedia
		s.Text = m.config.Page.append(s.Text[:0], problem, h["Retry-After"])
	} else {
		s.Text = appendProblem(s.Text[:0], &p.Policies, problem, v)
	}
	h["Content-Type"] = []string{media}
	h["Content-Length"] = []string{strconv.Itoa(len(s.Text))}
	w.WriteHeader(problem.status)
	if r.Method != http.MethodHead {
		w.Write(s.Text) // the client may be gone
	}
}

// appendProblem appends the body of RFC 9457.
func appendProblem(buf []byte, p *ratelimitheader.Policies, problem *problem, v *Verdict) []byte {
	buf = append(buf, `{"type":"`...)
	buf = append(buf, problem.kind...)
	buf = append(buf, `","title":"`...)
	buf = append(buf, problem.title...)
	buf = append(buf, `","status":`...)
	buf = strconv.AppendInt(buf, int64(problem.status), 10)
	switch problem {
	case &fieldTooLarge:
	case &fieldMissing:
		buf = appendMissing(buf, v.Set, v.Decision.Missing)
	default:
		buf = append(buf, `,"violated-policies":[`...)
		buf = appendViolated(buf, p, v)
		buf = append(buf, ']')
	}
	return append(buf, "}\n"...)
}

// appendMissing appends which field a request lacks, and where it belongs.
func appendMissing(buf []byte, set *ratelimit.Set, field string) []byte {
	text, _ := json.Marshal(struct { // strings have no error
		Detail  string `json:"detail"`
		Missing string `json:"missing"`
	}{middleware.MissingText(set, field), field})
	buf = append(buf, ',')
	return append(buf, text[1:len(text)-1]...)
}

// writeChallenge sets WWW-Authenticate, which an answer with status 401 must have, if d is a refusal because a field is missing:
// Bearer, or Key with the place where the request must have the field.
func writeChallenge(h http.Header, set *ratelimit.Set, d *ratelimit.Decision) {
	if d.Missing == "" {
		return
	}
	var all []string
	for _, s := range middleware.MissingSources(set, d.Missing) {
		switch {
		case s.Bearer:
			all = append(all, "Bearer")
		case s.Header != "":
			all = append(all, `Key header="`+s.Header+`"`)
		case s.Cookie != "":
			all = append(all, `Key cookie="`+s.Cookie+`"`)
		default:
			all = append(all, "Key")
		}
	}
	h["Www-Authenticate"] = all
}

// appendViolated appends the names of the policies that refused the event.
func appendViolated(buf []byte, p *ratelimitheader.Policies, v *Verdict) []byte {
	start := len(buf)
	for _, violation := range p.Violated(v.Outcomes, &v.Decision) {
		if len(buf) > start {
			buf = append(buf, ", "...)
		}
		buf = append(buf, violation.JSON...)
	}
	if len(buf) == start { // the store failed, and its rule is closed
		if r := p.Named(v.Decision.Rule); r != nil {
			buf = append(buf, r.JSON...)
		}
	}
	return buf
}

// A Responder writes the fields and bodies of a [Middleware] with Draft11, for programs
// that judge events themselves. A decision contains only the deciding rule, so the
// fields are about that rule alone. A Responder has the rules of one Set, does not
// change, and is safe for concurrent use. The zero Responder has no rules.
type Responder struct {
	set      *ratelimit.Set
	policies ratelimitheader.Policies
}

// NewResponder returns the Responder of decisions under set.
func NewResponder(set *ratelimit.Set) *Responder {
	return &Responder{set, ratelimitheader.New(set, false)}
}

// WriteHeaders adds RateLimit-Policy and RateLimit to h if r has the deciding rule of d,
// Retry-After if d is a refusal that ends, and WWW-Authenticate if the request lacks a field.
func (r *Responder) WriteHeaders(h http.Header, d *ratelimit.Decision) {
	if !d.Allowed && 0 < d.RetryAfter && d.RetryAfter < ratelimit.Never {
		h["Retry-After"] = []string{strconv.FormatInt(ratelimitheader.Seconds(d.RetryAfter), 10)}
	}
	writeChallenge(h, r.set, d)
	v := r.verdict(d)
	writeDraft(h, &r.policies, &v, nil)
}

// AppendBody appends the body of the refusal d to dst, and returns it with its media type and
// status code. The body is page if page is not nil and the client prefers HTML, or else the problem
// document (RFC 9457). request is the header of the request; answer is the header of the response,
// after [Responder.WriteHeaders].
func (r *Responder) AppendBody(dst []byte, d *ratelimit.Decision, page *Page, request, answer http.Header) (body []byte, media string, status int) {
	problem := problemOf(d)
	if page != nil && prefersPage(request) {
		return page.append(dst, problem, answer["Retry-After"]), pageMedia, problem.status
	}
	v := r.verdict(d)
	return appendProblem(dst, &r.policies, problem, &v), problemMedia, problem.status
}

// verdict returns d with the outcome of its deciding rule.
func (r *Responder) verdict(d *ratelimit.Decision) Verdict {
	return Verdict{Decision: *d, Set: r.set, Outcomes: r.policies.Deciding(nil, d)}
}
