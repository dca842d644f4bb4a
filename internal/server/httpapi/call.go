package httpapi

import (
	"cmp"
	"encoding/json"
	"errors"
	"io"
	"mime"
	"net/http"
	"net/netip"
	"net/url"
	"os"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/lately-go/lately/api"
	"github.com/lately-go/lately/internal/server/access"
	"github.com/lately-go/lately/internal/server/engine"
	"github.com/lately-go/lately/internal/server/listen"
)

const (
	keepBody = 64 << 10 // of the memory for bodies and answers
	freeBody = 4 << 10  // of a body or an answer that takes nothing from the budget
)

// A call is one request, with the memory that it takes. It is used for many requests, one
// after the other.
type call struct {
	s       *Server
	session *engine.Session
	latency *listen.LatencyPart

	w      http.ResponseWriter
	r      *http.Request
	route  *route
	name   string // in the path: of a counter
	target string // of the request that a proxy asks about, if it follows authPath
	query  url.Values
	access.Identity
	tokens *access.Tokens // by which the client was authorized

	body  []byte
	scan  scan     // of body
	key   []string // memory for the values of a key
	out   []byte
	wrote bool
	taken int // from the budget
}

// end releases the request, and memory that is larger than most requests need.
func (c *call) end() {
	c.giveBack()
	c.session.Event() // releases the event's values
	*c = call{s: c.s, session: c.session, latency: c.latency, body: kept(c.body), out: kept(c.out), key: c.key[:0]}
}

// giveBack returns to the budget what was charged.
func (c *call) giveBack() {
	c.s.Budget.Give(c.taken)
	c.taken = 0
}

// charge takes n more bytes from the budget, until the end of the call. It is an error
// if fewer are left.
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
		return errPacked
	}
	most := c.route.maxBody()
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
		return badArg("body: incomplete")
	case len(body) > most:
		return errTooLong(most)
	case !utf8.Valid(body):
		return badArg("body: must be UTF-8")
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

// yamlBodies are the media types of a rules file.
var yamlBodies = []string{"application/yaml", "application/x-yaml", "text/yaml", "text/x-yaml", "text/plain", "application/json"}

// bodies returns the media types of the bodies of t, first that of errors and of the OpenAPI
// document.
func (t *route) bodies() []string {
	if t.path == rulesCheckPath {
		return yamlBodies
	}
	return jsonType
}

// checkType returns an error for a body whose Content-Type is not that of the route. Web
// pages can send forms, which have other types, to any origin.
func (c *call) checkType() error {
	text, accepted := strings.Join(c.r.Header["Content-Type"], ", "), c.route.bodies()
	if text == jsonType[0] {
		return nil
	}
	if name, _, _ := mime.ParseMediaType(text); slices.Contains(accepted, name) {
		return nil
	}
	return problemf(http.StatusUnsupportedMediaType, api.BadArg, "Content-Type: %q: must be %s", clip(text), accepted[0])
}

// clip shortens what a client sent, for a message.
func clip(s string) string {
	if len(s) > 80 {
		return strings.ToValidUTF8(s[:80], "") + "..."
	}
	return s
}

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
	h := c.w.Header()
	h["Content-Type"], h["Content-Length"] = media, []string{strconv.Itoa(len(c.out))}
	c.begun(status)
	if status != http.StatusOK {
		c.w.WriteHeader(status)
	}
	c.w.Write(c.out) // after an error nobody reads the answer
	return nil
}

// begun notes that an answer of that status is being sent.
func (c *call) begun(status int) {
	c.wrote = true
	c.s.answers[status].Add(1)
}

// answer sends v as JSON, unless there is an error.
func (c *call) answer(v any, err error) error {
	if err != nil {
		return err
	}
	b, err := json.Marshal(v)
	if err != nil {
		return err
	}
	c.out = append(append(c.out[:0], b...), '\n')
	return c.send(cmp.Or(c.route.status, http.StatusOK), jsonType)
}

// peer returns the address of the client, for the log.
func (c *call) peer() netip.Addr { return c.s.identity.Client(c.r).Addr }
