package httpapi

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"slices"
	"sync"
	"time"

	"github.com/lately-go/lately/internal/server/access"
)

// cookieName is the name of the session cookie.
const cookieName = "lately"

// sessionLife is how long a session lasts.
const sessionLife = 12 * time.Hour

// maxEnded is how many ranges of ended sessions are kept for each identity. With one more, the
// sessions between the two newest ranges end too.
const maxEnded = 256

// sessions makes and checks the cookies of browsers that have logged in. A cookie contains
// the identity, the time of the login and a MAC. The server stores no sessions, so no
// number of logins ends another session. It stores the sessions that a logout has ended,
// until they would have expired, as ranges of their numbers: whoever logs in and out again and
// again adds to one range.
//
// Cookies are valid for one process: the key of the MAC is random, and times count from
// its start.
type sessions struct {
	key   [32]byte
	start time.Time

	mu     sync.Mutex
	number uint64 // of the newest session
	ended  map[access.Identity][]endedRange
}

// An endedRange is sessions of one identity that have ended, from the first number to the last.
// Those of an identity are in order, with others between them.
type endedRange struct {
	first, last uint64
	began       time.Duration // the newest of them
}

// isEnded reports whether ranges have a session, and where in them it is or belongs.
func isEnded(ranges []endedRange, number uint64) (at int, ended bool) {
	return slices.BinarySearchFunc(ranges, number, func(r endedRange, n uint64) int {
		switch {
		case r.last < n:
			return -1
		case r.first > n:
			return 1
		}
		return 0
	})
}

// addEnded adds a session, and joins ranges without a number between them. Too many are joined
// from the newest on.
func addEnded(ranges []endedRange, x session) []endedRange {
	at, ended := isEnded(ranges, x.Number)
	if ended {
		return ranges
	}
	ranges = slices.Insert(ranges, at, endedRange{x.Number, x.Number, x.Began})
	if at+1 < len(ranges) && ranges[at+1].first == x.Number+1 {
		ranges = joinEnded(ranges, at)
	}
	if at > 0 && ranges[at-1].last == x.Number-1 {
		ranges = joinEnded(ranges, at-1)
	}
	if len(ranges) > maxEnded {
		ranges = joinEnded(ranges, len(ranges)-2)
	}
	return ranges
}

// joinEnded joins a range with the next one.
func joinEnded(ranges []endedRange, at int) []endedRange {
	a, b := &ranges[at], ranges[at+1]
	a.last, a.began = b.last, max(a.began, b.began)
	return slices.Delete(ranges, at+1, at+2)
}

// dropExpired removes ranges whose sessions would have expired.
func dropExpired(ranges []endedRange, now time.Duration) []endedRange {
	return slices.DeleteFunc(ranges, func(r endedRange) bool { return now-r.began > sessionLife })
}

// A session is the content of a cookie.
type session struct {
	Number uint64
	Began  time.Duration // since sessions.start
	Who    access.Identity
}

func newSessions() *sessions {
	s := &sessions{start: time.Now(), ended: make(map[access.Identity][]endedRange)}
	_, _ = rand.Read(s.key[:]) // never fails: the program ends instead
	return s
}

// begin begins a session and returns the value of its cookie, which is valid as long as
// the tokens are the same.
func (s *sessions) begin(who access.Identity, tokens *access.Tokens) string {
	s.mu.Lock()
	s.number++
	x := session{s.number, time.Since(s.start), who}
	s.mu.Unlock()
	payload, _ := json.Marshal(x) // it has no error
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
	for who, ranges := range s.ended {
		if ranges = dropExpired(ranges, now); len(ranges) == 0 {
			delete(s.ended, who)
		} else {
			s.ended[who] = ranges
		}
	}
	s.ended[x.Who] = addEnded(s.ended[x.Who], x)
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
	if _, ended := isEnded(s.ended[x.Who], x.Number); ended {
		return session{}, false
	}
	return x, true
}
