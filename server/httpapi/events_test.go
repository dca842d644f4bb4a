package httpapi

import (
	"bufio"
	"fmt"
	"net"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// subscriber opens an event stream and reads its header.
func subscriber(t testing.TB, addr string) (net.Conn, *bufio.Reader) {
	t.Helper()
	conn := dial(t, addr)
	fmt.Fprint(conn, "GET /v1/events HTTP/1.1\r\nHost: localhost\r\n\r\n")
	in := bufio.NewReader(conn)
	for {
		line, err := in.ReadString('\n')
		if err != nil {
			t.Fatal(err)
		}
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
		line, err := in.ReadString('\n')
		if err != nil {
			t.Fatal(err)
		}
		if line == "event: "+name+"\n" {
			data, err := in.ReadString('\n')
			if err != nil {
				t.Fatal(err)
			}
			return strings.TrimSuffix(strings.TrimPrefix(data, "data: "), "\n")
		}
	}
}

func TestEvents(t *testing.T) {
	s := newServer(t, nil)
	_, in := subscriber(t, serve(t, s))
	for s.engine.Status().Subscribers == 0 {
		time.Sleep(time.Millisecond)
	}
	post(s, "/v1/bans", `{"rule":"flood","key":"203.0.113.1","for":"1m","reason":"a\nb"}`)
	if got := next(t, in, "ban"); !strings.Contains(got, `"key":["203.0.113.1"]`) || !strings.Contains(got, `"type":"ban"`) {
		t.Errorf("ban: %s", got)
	}
	post(s, "/v1/bans/lift", `{"rule":"flood","key":"203.0.113.1"}`)
	if got := next(t, in, "lift"); !strings.Contains(got, `"rule":"flood","key":["203.0.113.1"]`) {
		t.Errorf("lift: %s", got)
	}
	for range 5 {
		post(s, "/v1/check", `{"event":{"path":"/product/2"}}`)
	}
	if got := next(t, in, "hot"); !strings.Contains(got, `"rule":"product","key":["/product/2"]`) {
		t.Errorf("hot: %s", got)
	}
	if err := s.engine.Reload(parseRules(t, rulesText)); err != nil {
		t.Fatal(err)
	}
	if got := next(t, in, "rules"); !strings.Contains(got, `"type":"rules"`) {
		t.Errorf("rules: %s", got)
	}
	if got := next(t, in, "rates"); !strings.HasPrefix(got, `{"all":{"allowed":`) || !strings.Contains(got, `"totals":{"allowed":5`) {
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

// A thousand subscribers, of whom ten have stopped to read: the others are told of
// every event, and the ten are cut.
func TestStalledSubscribers(t *testing.T) {
	subscribers, stalled, events := 1000, 10, 100
	if raceEnabled {
		subscribers = 200
	}
	if long() {
		events = 1000
	}
	s := newServer(t, nil)
	addr := serve(t, s)
	var group sync.WaitGroup
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
			for range events {
				at := between(next(t, in, "ban"), `"reason":"`, " ")
				told.Add(1)
				if sent, err := time.Parse(time.RFC3339Nano, at); err == nil && i%10 == 0 {
					mu.Lock()
					late = append(late, time.Since(sent))
					mu.Unlock()
				}
			}
		})
	}
	for s.engine.Status().Subscribers < subscribers {
		time.Sleep(time.Millisecond)
	}
	// Keys of a kilobyte fill what the kernel keeps for one who does not read.
	key := strings.Repeat("k", 1000)
	for i := range events {
		name := fmt.Sprintf("%s%d", key[:900], i)
		reason := time.Now().Format(time.RFC3339Nano) + " " + strings.Repeat("r", 200)
		if _, err := s.engine.Ban("flood", []string{name}, time.Minute, reason, ""); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Millisecond) // not more than the machine can take: this is about the stalled
	}
	group.Wait()
	if want := int64((subscribers - stalled) * events); told.Load() != want {
		t.Errorf("%d events were read; want %d", told.Load(), want)
	}
	// The rest is for those who do not read. It goes on until all are cut.
	deadline := time.Now().Add(time.Minute)
	for i := 0; s.Stats().Cut < uint64(stalled) && time.Now().Before(deadline); i++ {
		if _, err := s.engine.Ban("flood", []string{fmt.Sprintf("%s%d", key, i)}, time.Minute, strings.Repeat("r", 256), ""); err != nil {
			t.Fatal(err)
		}
		if i%50 == 49 {
			time.Sleep(20 * time.Millisecond)
		}
	}
	if cut := s.Stats().Cut; cut < uint64(stalled) {
		t.Errorf("%d of %d who do not read were cut", cut, stalled)
	}
	slices.Sort(late)
	t.Logf("delivery of %d: p50 %v, p99 %v", len(late), late[len(late)/2], late[len(late)*99/100])
}

// between returns what is in s between before and after.
func between(s, before, after string) string {
	_, s, _ = strings.Cut(s, before)
	s, _, _ = strings.Cut(s, after)
	return s
}
