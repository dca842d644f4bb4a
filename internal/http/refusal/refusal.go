// Package refusal writes the answers to refused requests: their header fields and their
// bodies, which are problem documents (RFC 9457) or pages. latelyhttp and the HTTP listener
// of the server refuse by it.
package refusal

import (
	"encoding/json"
	"errors"
	"math/rand/v2"
	"net/http"
	"strconv"
	"time"

	"github.com/lately-go/lately/internal/http/middleware"
	"github.com/lately-go/lately/internal/http/ratelimitheader"
	"github.com/lately-go/lately/ratelimit"
)

// A Refusal is a refused request.
type Refusal struct {
	Set      *ratelimit.Set
	Policies *ratelimitheader.Policies // of Set
	Decision ratelimit.Decision
	Outcomes []ratelimit.Outcome
}

// WriteHeader sets Retry-After, with a random time up to jitter added, if the refusal ends, and
// WWW-Authenticate if the request lacks a field.
func (r *Refusal) WriteHeader(h http.Header, jitter time.Duration) {
	if d := r.Decision.RetryAfter; 0 < d && d < ratelimit.Never {
		wait := ratelimitheader.Seconds(d) + rand.Int64N(int64(jitter/time.Second)+1)
		h["Retry-After"] = []string{strconv.FormatInt(wait, 10)}
	}
	if r.Decision.Missing != "" {
		h["Www-Authenticate"] = r.challenges()
	}
}

// AppendBody appends the body to dst, and returns it with its media type and status code. It is page
// if page is not nil and the client prefers HTML, or else a problem document. request is the header
// of the request; answer is that of the answer, after [Refusal.WriteHeader].
func (r *Refusal) AppendBody(dst []byte, page *Page, request, answer http.Header) (body []byte, media string, status int) {
	p := problemOf(&r.Decision)
	if page != nil && prefersPage(request) {
		return page.append(dst, p, answer["Retry-After"]), "text/html; charset=utf-8", p.status
	}
	return r.appendProblem(dst, p), problemMedia, p.status
}

// problemMedia is the media type of a problem document.
const problemMedia = "application/problem+json"

// A problem is a registered problem type, with the title that goes with it.
type problem struct {
	status      int
	kind, title string
}

// draft-ietf-httpapi-ratelimit-headers-11 registers the types.
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

// appendProblem appends the body of RFC 9457.
func (r *Refusal) appendProblem(buf []byte, problem *problem) []byte {
	buf = append(buf, `{"type":"`...)
	buf = append(buf, problem.kind...)
	buf = append(buf, `","title":"`...)
	buf = append(buf, problem.title...)
	buf = append(buf, `","status":`...)
	buf = strconv.AppendInt(buf, int64(problem.status), 10)
	switch problem {
	case &fieldTooLarge:
	case &fieldMissing:
		buf = r.appendMissing(buf)
	default:
		buf = append(buf, `,"violated-policies":[`...)
		buf = r.appendViolated(buf)
		buf = append(buf, ']')
	}
	return append(buf, "}\n"...)
}

// appendMissing appends which field a request lacks, and where it belongs.
func (r *Refusal) appendMissing(buf []byte) []byte {
	text, _ := json.Marshal(struct { // strings have no error
		Detail  string `json:"detail"`
		Missing string `json:"missing"`
	}{middleware.MissingText(r.Set, r.Decision.Missing), r.Decision.Missing})
	buf = append(buf, ',')
	return append(buf, text[1:len(text)-1]...)
}

// challenges returns the values of WWW-Authenticate, which an answer with status 401 must have:
// Bearer, or Key with the place where the request must have the field.
func (r *Refusal) challenges() (all []string) {
	for _, s := range middleware.MissingSources(r.Set, r.Decision.Missing) {
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
	return all
}

// appendViolated appends the names of the policies that refused the event.
func (r *Refusal) appendViolated(buf []byte) []byte {
	start := len(buf)
	for _, violation := range r.Policies.Violated(r.Outcomes, &r.Decision) {
		if len(buf) > start {
			buf = append(buf, ", "...)
		}
		buf = append(buf, violation.JSON...)
	}
	if len(buf) == start { // the store failed, and its rule is closed
		if rule := r.Policies.Named(r.Decision.Rule); rule != nil {
			buf = append(buf, rule.JSON...)
		}
	}
	return buf
}
