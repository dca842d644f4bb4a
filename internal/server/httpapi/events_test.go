package httpapi

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/lately-go/lately/internal/test/must"
)

// subscriber opens an event stream and reads its header.
func subscriber(t testing.TB, addr string) (net.Conn, *bufio.Reader) {
	t.Helper()
	conn := dial(t, addr)
	fmt.Fprint(conn, "GET /v1/events HTTP/1.1\r\nHost: localhost\r\n\r\n")
	in := bufio.NewReader(conn)
	for {
		line := must.Get(in.ReadString('\n'))(t)
		if strings.HasPrefix(line, "HTTP/1.1 ") && !strings.HasPrefix(line, "HTTP/1.1 200") {
			t.Fatal(line)
		}
		if strings.HasPrefix(line, ": lately") {
			return conn, in
		}
	}
}

// next returns the data of the next event of that name.
func next(t testing.TB, in *bufio.Reader, name string) string {
	t.Helper()
	for {
		line := must.Get(in.ReadString('\n'))(t)
		if line == "event: "+name+"\n" {
			data := must.Get(in.ReadString('\n'))(t)
			return strings.TrimSuffix(strings.TrimPrefix(data, "data: "), "\n")
		}
	}
}

func TestEvents(t *testing.T) {
	s := newServer(t, nil)
	_, in := subscriber(t, serve(t, s))
	post(s, "/v1/bans", `{"rule":"flood","key":"203.0.113.1","for":"1m","reason":"a\nb"}`)
	if got := next(t, in, "ban"); !strings.Contains(got, `"key":["203.0.113.1"]`) || !strings.Contains(got, `"type":"ban"`) {
		t.Errorf("ban: %s", got)
	}
	post(s, "/v1/bans/unban", `{"rule":"flood","key":"203.0.113.1"}`)
	if got := next(t, in, "unban"); !strings.Contains(got, `"rule":"flood","key":["203.0.113.1"]`) {
		t.Errorf("unban: %s", got)
	}
	for range 5 {
		post(s, "/v1/check", `{"event":{"path":"/product/2"}}`)
	}
	if got := next(t, in, "hot"); !strings.Contains(got, `"rule":"product","key":["/product/2"]`) {
		t.Errorf("hot: %s", got)
	}
	must.Get(s.Engine.Replace(parseRules(t, rulesText), true))(t)
	if got := next(t, in, "rules"); !strings.Contains(got, `"type":"rules"`) {
		t.Errorf("rules: %s", got)
	}
	if got := next(t, in, "rates"); !strings.HasPrefix(got, `{"type":"rates","time":"`) || !strings.Contains(got, `"unmatched":5,"errors":0}}`) {
		t.Errorf("rates: %s", got)
	}
}

func TestTooManySubscribers(t *testing.T) {
	s := newServer(t, func(c *Config) { c.MaxSubscribers = 1 })
	addr := serve(t, s)
	subscriber(t, addr)
	conn := dial(t, addr)
	fmt.Fprint(conn, "GET /v1/events HTTP/1.1\r\nHost: localhost\r\n\r\n")
	if status, body, header := answerOf(t, conn); status != 503 || header.Get("Retry-After") == "" {
		t.Errorf("%d %s", status, body)
	}
}

// A thousand subscribers, ten of which have stopped reading: the others receive every event, and the ten are cut. The long
// form has a thousand events, and then two thousand subscribers of which next to none reads.
//
//	LATELY_LONG=1 go test ./internal/server/httpapi -run StalledSubscribers -v
func TestStalledSubscribers(t *testing.T) {
	switch {
	case testing.Short():
		stalledSubscribers(t, 200, 10, 20)
	case long():
		stalledSubscribers(t, 1000, 10, 1000)
		stalledSubscribers(t, 2020, 2000, 1000)
	default:
		stalledSubscribers(t, 1000, 10, 20)
	}
}

func stalledSubscribers(t *testing.T, subscribers, stalled, events int) {
	s := newServer(t, nil)
	healthy := int64(subscribers - stalled)
	var group, rest sync.WaitGroup
	t.Cleanup(rest.Wait) // when connections are closed
	addr := serve(t, s)
	var told atomic.Int64
	var mu sync.Mutex
	var late []time.Duration
	for i := range subscribers {
		conn, in := subscriber(t, addr)
		if i < stalled {
			conn.(*net.TCPConn).SetReadBuffer(4096)
			continue
		}
		group.Go(func() {
			defer func() { rest.Go(func() { io.Copy(io.Discard, in) }) }()
			for range events {
				at := between(next(t, in, "ban"), `"reason":"`, " ")
				told.Add(1)
				if sent, err := time.Parse(time.RFC3339Nano, at); err == nil && (i%10 == 0 || healthy < 100) {
					mu.Lock()
					late = append(late, time.Since(sent))
					mu.Unlock()
				}
			}
		})
	}
	// Keys of a kilobyte fill what the kernel buffers for a subscriber that does not read. The next event comes when the
	// last one was read, so that the test does not depend on the speed of the machine.
	key := strings.Repeat("k", 900)
	ban := func(i int) {
		reason := time.Now().Format(time.RFC3339Nano) + " " + strings.Repeat("r", 200)
		must.Get(s.Engine.Bans().Ban("login", []string{"192.0.2.1", fmt.Sprintf("%s%d", key, i)}, time.Minute, reason, ""))(t)
	}
	began, cut := time.Now(), time.Duration(0)
	note := func() {
		if cut == 0 && s.Subscribers.Load() <= healthy {
			cut = time.Since(began)
		}
	}
	for i := range events {
		ban(i)
		until(t, "all read the event", func() bool { return told.Load() == int64(i+1)*healthy })
		note()
	}
	group.Wait()
	if told.Load() != healthy*int64(events) {
		t.Errorf("%d events were read; want %d", told.Load(), healthy*int64(events))
	}
	if n := s.Cut.Load(); n > uint64(stalled) {
		t.Errorf("%d were cut; %d do not read", n, stalled)
	}
	// The next events are for the others: as much again as the kernel buffers for them. The test does not wait for the
	// healthy ones, which may be late on a busy machine.
	for i := range 150 {
		ban(events + i)
	}
	until(t, "who does not read is cut", func() bool { return s.Subscribers.Load() <= healthy })
	if n := metricOf(t, s, "lately_subscribers_dropped_total"); n < stalled {
		t.Errorf("%d subscribers are counted as dropped; %d do not read", n, stalled)
	}
	note()
	slices.Sort(late)
	t.Logf("%d subscribers beside %d that do not read, %d events: of %d deliveries p50 %v, p99 %v; the last of those was cut %v after the first event",
		healthy, stalled, events, len(late), late[len(late)/2], late[len(late)*99/100], cut)
}

// metricOf returns the value of a metric without labels.
func metricOf(t *testing.T, s *Server, name string) int {
	t.Helper()
	value := between(get(s, "/metrics").Body.String(), "\n"+name+" ", "\n")
	n, err := strconv.Atoi(value)
	if err != nil {
		t.Fatalf("%s is %q", name, value)
	}
	return n
}

// between returns the part of s between before and after.
func between(s, before, after string) string {
	_, s, _ = strings.Cut(s, before)
	s, _, _ = strings.Cut(s, after)
	return s
}
