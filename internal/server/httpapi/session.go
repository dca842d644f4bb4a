package httpapi

import (
	"crypto/rand"
	"sync"
	"time"

	"github.com/lately-go/lately/internal/server/access"
)

// cookieName is the name of the session cookie.
const cookieName = "lately"

// sessionLife is how long a session lasts.
const sessionLife = 12 * time.Hour

// maxSessions bounds the sessions of each identity. One more ends its oldest, so no login
// ends a session of another identity.
const maxSessions = 1000

// sessions are the browsers that have logged in, by the value of their cookie, which is
// random. They end with the process, and when the tokens change.
type sessions struct {
	mu  sync.Mutex
	all map[string]session
}

type session struct {
	who    access.Identity
	tokens *access.Tokens // at the login
	began  time.Time
}

func newSessions() *sessions { return &sessions{all: make(map[string]session)} }

// begin begins a session and returns the value of its cookie.
func (s *sessions) begin(who access.Identity, tokens *access.Tokens) string {
	now, id := time.Now(), rand.Text()
	s.mu.Lock()
	defer s.mu.Unlock()
	oldest, n := "", 0
	for other, x := range s.all {
		if now.Sub(x.began) >= sessionLife {
			delete(s.all, other)
		} else if x.who == who {
			if n++; oldest == "" || x.began.Before(s.all[oldest].began) {
				oldest = other
			}
		}
	}
	if n >= maxSessions {
		delete(s.all, oldest)
	}
	s.all[id] = session{who, tokens, now}
	return id
}

// identity returns the identity of the session of a cookie, none if there is no such session
// under these tokens.
func (s *sessions) identity(cookie string, tokens *access.Tokens) access.Identity {
	s.mu.Lock()
	x, ok := s.all[cookie]
	s.mu.Unlock()
	if !ok || time.Since(x.began) >= sessionLife || !tokens.Equal(x.tokens) {
		return access.Identity{}
	}
	return x.who
}

// end ends the session of a cookie, if it has one.
func (s *sessions) end(cookie string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.all, cookie)
}
