package httpapi

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"maps"
	"sync"
	"time"

	"github.com/lately-go/lately/internal/server/access"
)

// cookieName is the name of the session cookie.
const cookieName = "lately"

// sessionLife is how long a session lasts.
const sessionLife = 12 * time.Hour

// maxEnded is how many ended sessions are kept for each identity. One more logout ends
// all sessions of that identity.
const maxEnded = 256

// sessions makes and checks the cookies of browsers that have logged in. A cookie contains
// the identity, the time of the login and a MAC. The server stores no sessions, so no
// number of logins ends another session. It stores the sessions that a logout has ended,
// until they would have expired.
//
// Cookies are valid for one process: the key of the MAC is random, and times count from
// its start.
type sessions struct {
	key   [32]byte
	start time.Time

	mu    sync.Mutex
	ended map[access.Identity]*endedSessions
}

// endedSessions is the sessions of one identity that logouts have ended.
type endedSessions struct {
	before time.Duration            // all that began until then
	ids    map[string]time.Duration // when they began
}

// dropExpired removes the sessions that would have expired, and reports whether nothing is
// left.
func (e *endedSessions) dropExpired(now time.Duration) bool {
	maps.DeleteFunc(e.ids, func(_ string, began time.Duration) bool { return now-began > sessionLife })
	return len(e.ids) == 0 && now-e.before > sessionLife
}

// A session is the content of a cookie.
type session struct {
	ID    string
	Began time.Duration // since sessions.start
	Who   access.Identity
}

func newSessions() *sessions {
	s := &sessions{start: time.Now(), ended: make(map[access.Identity]*endedSessions)}
	_, _ = rand.Read(s.key[:]) // never fails: the program ends instead
	return s
}

// begin begins a session and returns the value of its cookie, which is valid as long as
// the tokens are the same.
func (s *sessions) begin(who access.Identity, tokens *access.Tokens) string {
	payload, _ := json.Marshal(session{rand.Text(), time.Since(s.start), who}) // it has no error
	return base64.RawURLEncoding.EncodeToString(s.seal(payload, tokens))
}

// identity returns the identity of the session of a cookie.
func (s *sessions) identity(cookie string, tokens *access.Tokens) access.Identity {
	x, _ := s.open(cookie, tokens)
	return x.Who
}

// end ends the session of a cookie, if it has one.
func (s *sessions) end(cookie string, tokens *access.Tokens) {
	x, ok := s.open(cookie, tokens)
	if !ok {
		return
	}
	now := time.Since(s.start)
	s.mu.Lock()
	defer s.mu.Unlock()
	e := s.ended[x.Who]
	if e == nil {
		maps.DeleteFunc(s.ended, func(_ access.Identity, e *endedSessions) bool { return e.dropExpired(now) })
		e = &endedSessions{before: -1, ids: make(map[string]time.Duration)}
		s.ended[x.Who] = e
	}
	if e.ids[x.ID] = x.Began; len(e.ids) > maxEnded {
		e.dropExpired(now)
	}
	if len(e.ids) > maxEnded {
		e.before = now
		clear(e.ids)
	}
}

// seal appends the MAC of a payload and the tokens to it.
func (s *sessions) seal(payload []byte, tokens *access.Tokens) []byte {
	mac := hmac.New(sha256.New, s.key[:])
	digest := tokens.Digest()
	mac.Write(digest[:])
	mac.Write(payload)
	return mac.Sum(payload)
}

// open returns the session of a cookie. ok is false for a cookie that this process has
// not made under these tokens, and for a session that has ended.
func (s *sessions) open(cookie string, tokens *access.Tokens) (x session, ok bool) {
	if len(cookie) > 512 {
		return x, false
	}
	text, err := base64.RawURLEncoding.DecodeString(cookie)
	n := len(text) - sha256.Size
	if err != nil || n < 0 || !hmac.Equal(s.seal(text[:n:n], tokens), text) {
		return x, false
	}
	if err := json.Unmarshal(text[:n], &x); err != nil || time.Since(s.start)-x.Began >= sessionLife {
		return session{}, false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if e := s.ended[x.Who]; e != nil {
		if _, ended := e.ids[x.ID]; ended || x.Began <= e.before {
			return session{}, false
		}
	}
	return x, true
}
