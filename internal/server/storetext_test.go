package server

import (
	"errors"
	"fmt"
	"log/slog"
	"net"
	"strings"
	"testing"
	"time"
	"unicode"

	"github.com/lately-go/lately/internal/server/loglimit"
	"github.com/lately-go/lately/internal/test/must"
)

// The text of an error of Redis is bounded and printable.
func TestStoreText(t *testing.T) {
	for text, want := range map[string]string{
		"":                             "",
		"NOAUTH required":              "NOAUTH required",
		"a\x1b[2Jb\r\nlevel=INFO c":    "a?[2Jb??level=INFO c",
		"\xff\x00\u202e":               "???",
		strings.Repeat("x", 200):       strings.Repeat("x", 200),
		strings.Repeat("x", 201):       strings.Repeat("x", 200) + "…",
		strings.Repeat("é", 150):       strings.Repeat("é", 100) + "…",
		"x" + strings.Repeat("é", 150): "x" + strings.Repeat("é", 99) + "?…",
	} {
		if got := storeText(errors.New(text)); got != want {
			t.Errorf("%.40q: %q, want %q", text, got, want)
		}
	}
}

// A program in the place of Redis that answers each command with a long error of any bytes neither floods the log nor puts
// these bytes into it, the status or answers to clients.
func TestErrorsOfRedisAreCut(t *testing.T) {
	l := must.Get(net.Listen("tcp", "127.0.0.1:0"))(t)
	defer l.Close()
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer conn.Close()
				b := make([]byte, 4096)
				for {
					if _, err := conn.Read(b); err != nil {
						return
					}
					fmt.Fprintf(conn, "-ERR \x1b[31m%s\x00secret\r\n", strings.Repeat("z", 2000))
				}
			}()
		}
	}()
	var log safeBuffer
	n := newNode(t, "redis://"+l.Addr().String()+"?dial_timeout=1s", func(c *Config) { c.StoreTimeout = time.Second })
	flooded := sharedStore{log: slog.New(loglimit.New(slog.NewTextHandler(&log, nil)))}
	for range 50 {
		flooded.note(fmt.Errorf("store: %s", strings.Repeat("\x1b", 10_000)))
	}
	eventually(t, "the status has an error", func() bool { return n.state().Error != "" })
	_, status := got(t, n.url+"/v1/status")
	answer := n.resp("TAKE shared 192.0.2.1")
	for what, text := range map[string]string{"status": n.state().Error, "answer": strings.Trim(answer, "\r\n"), "log": strings.ReplaceAll(n.log.String()+log.String(), "\n", "")} {
		if strings.ContainsFunc(text, func(r rune) bool { return unicode.IsControl(r) && r != '\r' && r != '\n' }) || strings.Contains(text, strings.Repeat("z", 300)) || strings.Contains(text, `\x1b`) {
			t.Errorf("%s: %.600q", what, text)
		}
	}
	for line := range strings.Lines(n.log.String() + log.String()) {
		if len(line) > 4*maxStoreText {
			t.Errorf("the log has a line of %d bytes: %.300q", len(line), line)
		}
	}
	if len(n.state().Error) > 2*maxStoreText {
		t.Errorf("the status is %.300s", status)
	}
	if lines := strings.Count(log.String(), "a call of the store failed"); lines == 0 || lines > 20 {
		t.Errorf("%d lines in the log for 50 errors", lines)
	}
}
