package httpapi

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lately-go/lately/internal/server/access"
)

var (
	admin  = access.Identity{Role: access.Admin, Name: "admin"}
	reader = access.Identity{Role: access.Read, Name: "reader"}
)

func wantSession(t *testing.T, s *sessions, cookie string, tokens *access.Tokens, want access.Identity) {
	t.Helper()
	if got := s.identity(cookie, tokens); got != want {
		t.Errorf("the session belongs to %v; want %v", got, want)
	}
}

// TestLoginsEndNoOtherSession logs in and out more often than sessions are kept, and then without logging out: only the
// oldest sessions of the same identity end, and memory is bounded.
func TestLoginsEndNoOtherSession(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, all := newSessions(), tokens(t)
		other, mine := s.begin(admin, all), s.begin(reader, all)
		for range 5000 {
			s.end(s.begin(reader, all))
		}
		wantSession(t, s, mine, all, reader)
		for range maxSessions - 1 {
			time.Sleep(time.Second)
			s.begin(reader, all)
		}
		wantSession(t, s, mine, all, reader)
		last := s.begin(reader, all)
		wantSession(t, s, mine, all, access.Identity{})
		wantSession(t, s, last, all, reader)
		wantSession(t, s, other, all, admin)
		if n := len(s.all); n != maxSessions+1 {
			t.Errorf("%d sessions are kept, want %d", n, maxSessions+1)
		}
		time.Sleep(sessionLife)
		s.begin(admin, all)
		if n := len(s.all); n != 1 {
			t.Errorf("%d sessions are kept after all others have expired", n)
		}
	})
}

// TestSessionEnds ends a session by time, by a logout, by other tokens and by changes to its cookie.
func TestSessionEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, all := newSessions(), tokens(t)
		cookie, ended := s.begin(admin, all), s.begin(admin, all)
		wantSession(t, s, cookie, all, admin)
		wantSession(t, s, cookie, otherTokens(t), access.Identity{})
		wantSession(t, newSessions(), cookie, all, access.Identity{})
		s.end(ended)
		wantSession(t, s, ended, all, access.Identity{})
		for i := range cookie {
			b := []byte(cookie)
			b[i]++
			wantSession(t, s, string(b), all, access.Identity{})
		}
		for _, c := range []string{"", "A", cookie[:10], cookie + "AAAA", strings.Repeat("A", 4000)} {
			wantSession(t, s, c, all, access.Identity{})
		}
		time.Sleep(sessionLife - time.Second)
		wantSession(t, s, cookie, all, admin)
		time.Sleep(time.Second)
		wantSession(t, s, cookie, all, access.Identity{})
	})
}
