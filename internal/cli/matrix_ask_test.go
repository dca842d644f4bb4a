package cli

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/lately-go/lately/internal/resp"
	"github.com/lately-go/lately/internal/test/must"
	"github.com/lately-go/lately/internal/test/resptest"
)

// askRESP sends commands that "; " separates on a connection of their own, and returns the last reply.
func (m *matrixServer) askRESP(call, _ string) (answer string, ok bool) {
	m.Helper()
	conn := must.Get(m.dial(m.Context(), m.resp))(m)
	defer conn.Close()
	conn.SetDeadline(time.Now().Add(time.Minute))
	c := &talker{Conn: conn, replies: resptest.NewReader(conn)}
	if m.token != "" && m.tls == nil {
		call = "AUTH " + m.token + "; " + call
	}
	for command := range strings.SplitSeq(call, "; ") {
		must.Get(c.Write(resp.AppendCommand(nil, strings.Fields(command)...)))(m)
		v, err := c.replies.Next()
		if err != nil {
			m.Fatalf("%s: %v", call, err)
		}
		answer, ok = inLine(v), v.Err() == nil
		if v.Err() != nil {
			answer = v.Err().Error()
		}
	}
	return answer, ok
}

// askHTTP sends a request, "METHOD path [Header:value ...] [body]", and returns the status and the beginning of the answer,
// up to where want is in it.
func (m *matrixServer) askHTTP(call, want string) (answer string, ok bool) {
	m.Helper()
	ctx, cancel := context.WithTimeout(m.Context(), time.Minute)
	defer cancel()
	method, rest, _ := strings.Cut(call, " ")
	path, rest, _ := strings.Cut(rest, " ")
	r := must.Get(http.NewRequestWithContext(ctx, method, m.url(path), nil))(m)
	if m.token != "" && m.tls == nil {
		r.Header.Set("X-Lately-Token", m.token)
	}
	for {
		field, after, _ := strings.Cut(rest, " ")
		name, value, found := strings.Cut(field, ":")
		if !found || strings.ContainsAny(name, `{"`) || name == "version" {
			break
		}
		r.Header.Set(name, value)
		rest = after
	}
	if rest != "" {
		body := strings.NewReplacer("~", "\n", "$SESSION", m.session).Replace(rest)
		r.Body, r.ContentLength = io.NopCloser(strings.NewReader(body)), int64(len(body))
		if r.Header.Get("Content-Type") == "" {
			r.Header.Set("Content-Type", "application/json")
		}
	}
	w, err := m.web.RoundTrip(r)
	if err != nil {
		m.Fatalf("%s: %v", call, err)
	}
	defer w.Body.Close()
	b := []byte(fmt.Sprint(w.StatusCode, " "))
	for part := make([]byte, 4096); !bytes.Contains(b, []byte(want)) || want == ""; {
		n, err := w.Body.Read(part)
		if b = append(b, part[:n]...); err != nil {
			break
		}
	}
	if _, after, ok := bytes.Cut(b, []byte(`{"session":"`)); ok {
		session, _, _ := bytes.Cut(after, []byte(`"`))
		m.session = string(session)
	}
	return string(b), w.StatusCode < 400
}

// askCLI runs a command line, and interrupts it when want is in its output: serve and follow do not end by themselves.
func (m *matrixServer) askCLI(call, want string) (answer string, ok bool) {
	m.Helper()
	ctx, cancel := context.WithTimeout(m.Context(), time.Minute)
	defer cancel()
	args := strings.Fields(call)
	asks := slices.ContainsFunc(args, func(arg string) bool {
		return strings.HasPrefix(arg, "http://") || strings.HasPrefix(arg, "https://") || strings.HasPrefix(arg, "unix:")
	})
	switch {
	case asks && m.tls != nil:
		args = append(args, "--ca-file", m.dir+"/cert.pem", "--cert-file", m.dir+"/cert.pem", "--key-file", m.dir+"/key.pem")
	case asks && m.token != "":
		args = append(args, "--token-file", m.dir+"/token")
	}
	output := &awaited{want: want, found: func() {}}
	if endless := args[0] == "serve" || args[0] == "follow"; endless {
		output.found = cancel
	}
	if slices.Contains(args, "matrix") { // a follower, which prints at its end what it has sent
		ended, stop := context.WithCancel(ctx)
		defer stop()
		go func() {
			for known := false; !known && ended.Err() == nil && m.http != ""; time.Sleep(10 * time.Millisecond) {
				answer, _ := m.quiet("GET /v1/status")
				known = strings.Contains(answer, "matrix:")
			}
			if m.http != "" {
				cancel()
			}
		}()
	}
	code := run(ctx, args, strings.NewReader(""), output, output)
	answer = output.String()
	found := strings.Contains(answer, want)
	return answer, code == exitOK || code == exitInterrupted && found && !slices.Contains(slices.Collect(maps.Values(matrixRefusals)), want)
}

// quiet is askHTTP for goroutines.
func (m *matrixServer) quiet(call string) (string, error) {
	r, err := http.NewRequest("GET", m.url(strings.TrimPrefix(call, "GET ")), nil)
	if err != nil {
		return "", err
	}
	if m.tls == nil {
		r.Header.Set("Authorization", "Bearer "+m.token)
	}
	w, err := m.web.RoundTrip(r)
	if err != nil {
		return "", err
	}
	defer w.Body.Close()
	b, err := io.ReadAll(w.Body)
	return string(b), err
}

// An awaited is an output that calls found when it has want.
type awaited struct {
	lines
	want  string
	found func()
}

func (a *awaited) Write(b []byte) (int, error) {
	n, err := a.lines.Write(b)
	if strings.Contains(a.String(), a.want) {
		a.found()
	}
	return n, err
}
