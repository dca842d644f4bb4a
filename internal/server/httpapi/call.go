package httpapi

import (
	"encoding/json"
	"errors"
	"io"
	"mime"
	"net/http"
	"net/netip"
	"net/url"
	"os"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/lately-go/lately/api"
	"github.com/lately-go/lately/internal/server/access"
	"github.com/lately-go/lately/internal/server/engine"
	"github.com/lately-go/lately/match"
	"github.com/lately-go/lately/rules"
)

const (
	maxBody  = 1 << 20
	keepBody = 64 << 10 // of the memory for bodies and answers
	freeBody = 4 << 10  // of a body or an answer that takes nothing from the budget
)

// A call is one request on its way through the server, with the memory that it
// takes. It is used for many, one after the other.
type call struct {
	s       *Server
	caller  *engine.Caller
	latency *engine.LatencyPart

	w     http.ResponseWriter
	r     *http.Request
	route *route
	name  string // what {name} stands for
	asked string // the target of the request that a proxy asks about, where that is in the path
	role  access.Role
	who   string // the name of the token

	tokens *access.Tokens // by which it was authorized

	body  []byte
	scan  scan   // of body
	key   []byte // joined from its values
	out   []byte
	wrote bool
	taken int // from the budget
}

func (c *call) begin(w http.ResponseWriter, r *http.Request) {
	c.w, c.r, c.route, c.name, c.role, c.who, c.tokens, c.wrote = w, r, nil, "", access.None, "", nil, false
	c.asked = ""
}

// end lets go of the request, and of memory that is larger than most need.
func (c *call) end() {
	c.w, c.r, c.route = nil, nil, nil
	c.body, c.out, c.key = kept(c.body), kept(c.out), kept(c.key)
	c.caller.Event() // lets go of the event's values
	c.giveBack()
}

// giveBack gives back what was charged.
func (c *call) giveBack() {
	c.s.Budget.Give(c.taken)
	c.taken = 0
}

// charge takes n more bytes from the budget, until the end of the call. If there are
// not so many left, it returns an error.
func (c *call) charge(n int) error {
	if !c.s.Budget.Take(n) {
		return errBusy
	}
	c.taken += n
	return nil
}

func kept(b []byte) []byte {
	if cap(b) > keepBody {
		return nil
	}
	return b[:0]
}

// readBody reads the body of a request that has to have one.
func (c *call) readBody() error {
	if err := c.checkType(); err != nil {
		return err
	}
	if c.r.Header["Content-Encoding"] != nil {
		return &apiError{status: http.StatusUnsupportedMediaType, code: api.BadArg, detail: "the body is compressed; allowed is one that is not"}
	}
	most := c.route.mostBody()
	if c.r.ContentLength > int64(most) {
		return errTooLong(most)
	}
	body, err := c.receive(most)
	c.body = body
	switch {
	case err == errBusy:
		return err
	case errors.Is(err, os.ErrDeadlineExceeded):
		return errSlow
	case err != nil:
		return badArg("the body could not be read to its end")
	case len(body) > most:
		return errTooLong(most)
	case !utf8.Valid(body):
		return badArg("the body is not UTF-8")
	}
	return nil
}

// receive reads the body, up to one byte more than most. Its memory grows with what has
// arrived, not with what is announced.
func (c *call) receive(most int) ([]byte, error) {
	body := c.body[:0]
	if err := c.charge(max(cap(body)-freeBody, 0)); err != nil {
		return nil, err
	}
	for {
		if len(body) == cap(body) {
			size := min(max(512, 2*cap(body)), most+1)
			if err := c.charge(max(size-freeBody, 0) - max(cap(body)-freeBody, 0)); err != nil {
				return nil, err
			}
			body = append(make([]byte, 0, size), body...)
		}
		n, err := c.r.Body.Read(body[len(body):cap(body)])
		body = body[:len(body)+n]
		if err == io.EOF || len(body) > most {
			return body, nil
		}
		if err != nil {
			return body, err
		}
	}
}

// checkType returns an error for a body that does not call itself what it has to be:
// that of a form, which any web page can send, has no such type.
func (c *call) checkType() error {
	t := c.r.Header["Content-Type"]
	if len(t) == 1 && t[0] == "application/json" {
		return nil
	}
	name := ""
	if len(t) == 1 {
		name, _, _ = mime.ParseMediaType(t[0])
	}
	if name == "application/json" {
		return nil
	}
	if c.route.body == yamlBody {
		switch name {
		case "application/yaml", "application/x-yaml", "text/yaml", "text/x-yaml", "text/plain":
			return nil
		}
		return &apiError{
			status: http.StatusUnsupportedMediaType, code: api.BadArg,
			detail: "Content-Type is " + strconv.Quote(clip(strings.Join(t, ", "))) + "; allowed is application/yaml",
		}
	}
	return &apiError{
		status: http.StatusUnsupportedMediaType, code: api.BadArg,
		detail: "Content-Type is " + strconv.Quote(clip(strings.Join(t, ", "))) + "; allowed is application/json",
	}
}

// clip shortens what a client sent, for a message.
func clip(s string) string {
	if len(s) > 80 {
		return strings.ToValidUTF8(s[:80], "") + "..."
	}
	return s
}

// netHTTPLength is up to where net/http tells the length of an answer by itself. A
// longer one it would send in chunks.
const netHTTPLength = 2048

// send sends c.out as the answer.
func (c *call) send(status int, media []string) error {
	if n := cap(c.out); n > freeBody { // the client may be slow to read it
		if err := c.charge(n - freeBody); err != nil {
			return err
		}
	}
	return c.write(status, media)
}

// write is send without a charge, for answers that are small.
func (c *call) write(status int, media []string) error {
	c.w.Header()["Content-Type"] = media
	if len(c.out) > netHTTPLength {
		c.w.Header()["Content-Length"] = []string{strconv.Itoa(len(c.out))}
	}
	c.begun(status)
	if status != http.StatusOK {
		c.w.WriteHeader(status)
	}
	c.w.Write(c.out) // nobody is left to hear of an error
	return nil
}

// begun notes that an answer of that status is being sent.
func (c *call) begun(status int) {
	c.wrote = true
	c.s.answers[status].Add(1)
}

// answer sends v as JSON with the route's status.
func (c *call) answer(v any) error {
	b, err := json.Marshal(v)
	if err != nil {
		return err
	}
	c.out = append(append(c.out[:0], b...), '\n')
	status := c.route.status
	if status == 0 {
		status = http.StatusOK
	}
	return c.send(status, jsonType)
}

// query returns the query. Parameters that the route does not have are an error, and
// so is one that is there more than once where one is allowed.
func (c *call) query() (url.Values, error) {
	if c.r.URL.RawQuery == "" && len(c.route.query) == 0 {
		return nil, nil
	}
	q, err := url.ParseQuery(c.r.URL.RawQuery)
	if err != nil {
		return nil, badArg("the query is not one: %s", clip(err.Error()))
	}
	if !utf8.ValidString(c.r.URL.RawQuery) {
		return nil, badArg("the query is not UTF-8")
	}
	for name, values := range q {
		p := c.route.parameter(name)
		switch {
		case p == nil:
			return nil, badArg("the query has %q; allowed is %s", clip(name), c.route.parameters())
		case len(values) > 1 && !p.many:
			return nil, badArg("the query has %s %d times; allowed is once", name, len(values))
		}
	}
	for i := range c.route.query {
		if p := &c.route.query[i]; p.needed && len(q[p.name]) == 0 {
			return nil, badArg("the query has no %s; it has to, such as %s=%s", p.name, p.name, p.example)
		}
	}
	return q, nil
}

func (t *route) parameter(name string) *parameter {
	for i := range t.query {
		if t.query[i].name == name {
			return &t.query[i]
		}
	}
	return nil
}

func (t *route) parameters() string {
	if len(t.query) == 0 {
		return "none"
	}
	var names []string
	for i := range t.query {
		names = append(names, t.query[i].name)
	}
	return strings.Join(names, ", ")
}

// number returns a number of the query.
func number(q url.Values, name string, otherwise, least, most int) (int, error) {
	v := q.Get(name)
	if v == "" {
		return otherwise, nil
	}
	n, err := strconv.Atoi(v)
	if err != nil || n < least || n > most {
		return 0, badArg("%s is %q; allowed is %d to %d", name, clip(v), least, most)
	}
	return n, nil
}

// listQuery returns the query of a list of keys: how many, and over which span.
func (c *call) listQuery(otherwise time.Duration) (q url.Values, n int, d time.Duration, err error) {
	if q, err = c.query(); err != nil {
		return nil, 0, 0, err
	}
	if n, err = number(q, "n", 20, 1, 1000); err != nil {
		return nil, 0, 0, err
	}
	d, err = span(q, otherwise)
	return q, n, d, err
}

// span returns a span of the query.
func span(q url.Values, otherwise time.Duration) (time.Duration, error) {
	v := q.Get("span")
	if v == "" {
		return otherwise, nil
	}
	d, err := rules.ParseDuration(v)
	if err != nil {
		return 0, badArg("span is %q; allowed is a duration such as 30s, 5m or 24h", clip(v))
	}
	return d, nil
}

// joined makes c.key the values of a key with separators between them, and returns
// it as a string that holds until the next call.
func (c *call) joined(values []string) (string, error) {
	if len(values) == 1 {
		return values[0], nil
	}
	if len(values) == 0 || len(values) > match.MaxKeyFields {
		return "", badArg("key has %d values; allowed is 1 to %d", len(values), match.MaxKeyFields)
	}
	c.key = c.key[:0]
	for i, v := range values {
		if strings.IndexByte(v, engine.KeySeparator) >= 0 {
			return "", badArg("value %d of key has a tab; allowed in a key of one value only", i+1)
		}
		if i > 0 {
			c.key = append(c.key, engine.KeySeparator)
		}
		c.key = append(c.key, v...)
	}
	return view(c.key), nil
}

// peer returns the address that the request came from, for the guard and the log.
func (c *call) peer() netip.Addr { return c.s.identity.Client(c.r).Addr }
