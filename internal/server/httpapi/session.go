package httpapi

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"net/http"
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
	before time.Duration               // all that began until then
	ids    map[sessionID]time.Duration // when they began
}

// A sessionID identifies a session.
type sessionID [16]byte

// A session is the content of a cookie.
type session struct {
	id    sessionID
	began time.Duration // since sessions.start
	who   access.Identity
}

func newSessions() *sessions {
	s := &sessions{start: time.Now(), ended: make(map[access.Identity]*endedSessions)}
	_, _ = rand.Read(s.key[:]) // never fails: the program ends instead
	return s
}

// begin begins a session and returns the value of its cookie, which is valid as long as
// the tokens are the same.
func (s *sessions) begin(who access.Identity, tokens *access.Tokens) string {
	x := session{began: time.Since(s.start), who: who}
	_, _ = rand.Read(x.id[:])
	return base64.RawURLEncoding.EncodeToString(s.seal(x.append(nil), tokens))
}

// identity returns the identity of the session in r's cookie.
func (s *sessions) identity(r *http.Request, tokens *access.Tokens) access.Identity {
	cookie, err := r.Cookie(cookieName)
	if err != nil {
		return access.Identity{}
	}
	x, _ := s.open(cookie.Value, tokens)
	return x.who
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
	e := s.ended[x.who]
	if e == nil {
		s.dropExpired(now)
		e = &endedSessions{before: -1, ids: make(map[sessionID]time.Duration)}
		s.ended[x.who] = e
	}
	e.ids[x.id] = x.began
	if len(e.ids) <= maxEnded {
		return
	}
	if e.dropExpired(now); len(e.ids) > maxEnded {
		e.before = now
		clear(e.ids)
	}
}

// dropExpired removes the sessions that would have expired.
//
// REQUIRES: s.mu.
func (s *sessions) dropExpired(now time.Duration) {
	for who, e := range s.ended {
		if e.dropExpired(now); len(e.ids) == 0 && now-e.before > sessionLife {
			delete(s.ended, who)
		}
	}
}

func (e *endedSessions) dropExpired(now time.Duration) {
	for id, began := range e.ids {
		if now-began > sessionLife {
			delete(e.ids, id)
		}
	}
}

// The payload of a cookie: id, time, role, name. The MAC follows it.
const sessionHead = len(sessionID{}) + 8 + 1

// append appends x as the payload of a cookie.
func (x *session) append(dst []byte) []byte {
	dst = append(dst, x.id[:]...)
	dst = binary.BigEndian.AppendUint64(dst, uint64(x.began))
	dst = append(dst, byte(x.who.Role))
	return append(dst, x.who.Name...)
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
	if err != nil || n < sessionHead {
		return x, false
	}
	if sealed := s.seal(text[:n:n], tokens); !hmac.Equal(sealed, text) {
		return x, false
	}
	copy(x.id[:], text)
	x.began = time.Duration(binary.BigEndian.Uint64(text[len(x.id):]))
	x.who = access.Identity{Role: access.Role(text[sessionHead-1]), Name: string(text[sessionHead:n])}
	if time.Since(s.start)-x.began >= sessionLife {
		return session{}, false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if e := s.ended[x.who]; e != nil {
		if _, ended := e.ids[x.id]; ended || x.began <= e.before {
			return session{}, false
		}
	}
	return x, true
}
