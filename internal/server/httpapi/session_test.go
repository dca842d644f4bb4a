package httpapi

import (
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lately-go/lately/internal/server/access"
	"github.com/lately-go/lately/internal/test/randtest"
)

var (
	admin  = access.Identity{Role: access.Admin, Name: "admin"}
	reader = access.Identity{Role: access.Read, Name: "reader"}
)

func wantSession(t *testing.T, s *sessions, cookie string, tokens *access.Tokens, want access.Identity) {
	t.Helper()
	if got := s.identity(cookie, tokens); got != want {
		t.Errorf("the session is that of %v; want %v", got, want)
	}
}

// TestLoginsEndNoSession logs in and out more often than sessions used to be kept.
func TestLoginsEndNoSession(t *testing.T) {
	s, all := newSessions(), tokens(t)
	first := s.begin(admin, all)
	for range 5000 {
		s.begin(admin, all)
		s.end(s.begin(reader, all), all)
	}
	wantSession(t, s, first, all, admin)
	if n := len(s.ended[reader]); n > maxEnded {
		t.Errorf("%d ranges of ended sessions are kept", n)
	}
}

// TestLogoutsEndNoOther logs out many sessions of one identity, one after another, at random and from
// the oldest on: another session of it that began before, between or after them goes on.
func TestLogoutsEndNoOther(t *testing.T) {
	rnd := randtest.New(t)
	for name, order := range map[string]func(cookies []string){
		"oldest first": func([]string) {},
		"newest first": slices.Reverse[[]string],
		"at random":    func(c []string) { rnd.Shuffle(len(c), func(i, j int) { c[i], c[j] = c[j], c[i] }) },
	} {
		s, all := newSessions(), tokens(t)
		var kept, cookies []string
		for i := range 100 {
			if i%25 == 0 {
				kept = append(kept, s.begin(reader, all))
			}
			cookies = append(cookies, s.begin(reader, all))
		}
		order(cookies)
		for _, c := range cookies {
			s.end(c, all)
		}
		for range 5000 {
			s.end(s.begin(reader, all), all)
		}
		kept = append(kept, s.begin(reader, all))
		for i, c := range kept {
			if s.identity(c, all) != reader {
				t.Errorf("%s: session %d has ended, and nobody ended it", name, i)
			}
		}
		for _, c := range cookies {
			wantSession(t, s, c, all, access.Identity{})
		}
		if n := len(s.ended[reader]); n > len(kept) {
			t.Errorf("%s: %d ranges are kept for %d sessions between them", name, n, len(kept))
		}
	}
}

// TestEndedSessionsStayEnded ends more sessions of an identity than are kept: none of
// them works again, and a new login does.
func TestEndedSessionsStayEnded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, all := newSessions(), tokens(t)
		var cookies []string
		for range maxEnded + 10 {
			time.Sleep(time.Second)
			s.begin(reader, all) // one that nobody ends is between each two
			cookies = append(cookies, s.begin(reader, all))
			s.end(cookies[len(cookies)-1], all)
		}
		for _, c := range cookies {
			wantSession(t, s, c, all, access.Identity{})
		}
		time.Sleep(time.Second)
		wantSession(t, s, s.begin(reader, all), all, reader)
		time.Sleep(2 * sessionLife)
		s.end(s.begin(admin, all), all)
		if len(s.ended) != 1 || len(s.ended[admin]) != 1 {
			t.Errorf("after a day, ended sessions of %d identities are kept; want those of one", len(s.ended))
		}
	})
}

// TestSessionEnds ends a session by time, by other tokens and by changes to its cookie.
func TestSessionEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, all := newSessions(), tokens(t)
		cookie := s.begin(admin, all)
		wantSession(t, s, cookie, all, admin)
		wantSession(t, s, cookie, otherTokens(t), access.Identity{})
		wantSession(t, newSessions(), cookie, all, access.Identity{})
		for i := range cookie {
			b := []byte(cookie)
			if b[i]++; b[i] == '{' {
				b[i] = 'A'
			}
			// The last character has bits that stand for nothing.
			if s.identity(string(b), all).Role != access.None && i < len(b)-1 {
				t.Fatalf("with another byte %d, the cookie is still valid", i)
			}
		}
		for _, c := range []string{"", "A", cookie[:40], cookie + "AAAA", strings.Repeat("A", 4000)} {
			wantSession(t, s, c, all, access.Identity{})
		}
		time.Sleep(sessionLife - time.Second)
		wantSession(t, s, cookie, all, admin)
		time.Sleep(time.Second)
		wantSession(t, s, cookie, all, access.Identity{})
	})
}
