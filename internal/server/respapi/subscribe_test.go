package respapi

import (
	"encoding/json"
	"fmt"
	"net"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/lately-go/lately/internal/resp"
	"github.com/lately-go/lately/internal/server/access"
	"github.com/lately-go/lately/internal/test/must"
)

func TestSubscribe(t *testing.T) {
	s := start(t, Config{Limits: access.Limits{MaxSubscribers: 2}}, false)
	c, admin := s.dial(), s.dial()
	c.want("UNSUBSCRIBE", `["unsubscribe" nil 0]`)
	must.Get(c.conn.Write(resp.AppendCommand(nil, "UNSUBSCRIBE", "")))(t)
	if got := c.next(); got != `["unsubscribe" "" 0]` {
		t.Errorf("the answer about an empty name is %s", got)
	}
	c.want("SUBSCRIBE bans:login unbans", `["subscribe" "bans:login" 1]`)
	if got := c.next(); got != `["subscribe" "unbans" 2]` {
		t.Errorf("the second answer is %s", got)
	}
	c.want("SUBSCRIBE unbans", `["subscribe" "unbans" 2]`)
	c.want("PSUBSCRIBE ban?", `["psubscribe" "ban?" 3]`)
	c.want("PING", `["pong" ""]`)
	c.want("PING x", `["pong" "x"]`)
	c.want("TAKE login a", "-BADARG take on a connection that subscribes: must be …")
	c.want("ECHO x", "-BADARG echo…")

	admin.want("BAN login a 1h", "+OK")
	if got := c.next(); !strings.HasPrefix(got, `["pmessage" "ban?" "bans" "{\"type\":\"ban\"`) {
		t.Errorf("told %s", got)
	}
	v, err := c.r.Next()
	if err != nil || !strings.HasPrefix(show(v), `["message" "bans:login" "{`) {
		t.Fatalf("received %s, %v", show(v), err)
	}
	var ev struct {
		Type string
		Ban  struct {
			Rule string
			Key  []string
		}
	}
	if err := json.Unmarshal([]byte(v.Elems[2].Text), &ev); err != nil || ev.Type != "ban" || ev.Ban.Key[0] != "a" {
		t.Errorf("the event is %+v, %v", ev, err)
	}
	admin.want("BAN pair 192.0.2.1^y 1h", "+OK")
	if got := c.next(); !strings.HasPrefix(got, `["pmessage" "ban?" "bans"`) || !strings.Contains(got, "pair") {
		t.Errorf("told %s", got)
	}
	admin.want("UNBAN login a", "1")
	if got := c.next(); !strings.HasPrefix(got, `["message" "unbans" "{\"type\":\"unban\"`) {
		t.Errorf("told %s", got)
	}

	second := s.dial()
	second.want("HELLO 3", `%[…`)
	second.want("PSUBSCRIBE hot*", `>["psubscribe" "hot*" 1]`)
	for range 3 {
		second.want("CHECK path /product/1", "[1 …")
	}
	if got := second.next(); !strings.HasPrefix(got, `>["pmessage" "hot*" "hot" "{\"type\":\"hot\"`) {
		t.Errorf("told %s", got)
	}
	if got := second.next(); !strings.HasPrefix(got, `>["pmessage" "hot*" "hot:product"`) {
		t.Errorf("told %s", got)
	}
	admin.want("SUBSCRIBE bans", "-OVERLOAD there are too many subscribers")
	c.want("PUNSUBSCRIBE", `["punsubscribe" "ban?" 2]`)
	c.want("UNSUBSCRIBE", `["unsubscribe" "bans:login" 1]`)
	if got := c.next(); got != `["unsubscribe" "unbans" 0]` {
		t.Errorf("the last answer is %s", got)
	}
	c.want("TAKE login z", "[1 …")
	admin.want("SUBSCRIBE bans", `["subscribe" "bans" 1]`)
	admin.want("RESET", "+RESET")
	admin.want("ECHO x", `"x"`)
}

func TestSubscriptionLimits(t *testing.T) {
	c := start(t, Config{}, false).dial()
	c.want("SUBSCRIBE "+strings.Repeat("a ", maxSubscriptions+1), "-BADARG 129 subscriptions: must be up to 128 on a connection")
	c.want("SUBSCRIBE "+strings.Repeat("a", maxChannel+1), "-BADARG name of a channel: 257 bytes: must be 1 to 256")
	c.want("ECHO x", `"x"`) // nothing is subscribed to
}

// TestManySubscribers sends many events to many subscribers, some of which do not read. The next event comes when the last
// one was read, so that the test does not depend on the speed of the machine. In its long form they are a thousand, and it
// waits until the ten are cut; TestSlowClients checks the time of that.
//
//	LATELY_LONG=1 go test ./internal/server/respapi -run ManySubscribers -v
func TestManySubscribers(t *testing.T) {
	subscribers, stalled, events := 100, 5, 200
	if long() {
		subscribers, stalled, events = 1000, 10, 2000
	}
	s := start(t, Config{}, false)
	healthy := subscribers - stalled
	var late []time.Duration
	var told atomic.Int64
	var mu sync.Mutex
	var wg sync.WaitGroup
	for range healthy {
		c := s.dial()
		c.want("HELLO 3", "%[…")
		c.want("SUBSCRIBE bans", `>["subscribe" "bans" 1]`)
		wg.Go(func() {
			for range events {
				v, err := c.r.Next()
				if err != nil {
					t.Errorf("a healthy subscriber was cut: %v", err)
					return
				}
				var ev struct{ Time time.Time }
				if err := json.Unmarshal([]byte(v.Elems[2].Text), &ev); err != nil {
					t.Error(err)
				}
				mu.Lock()
				late = append(late, time.Since(ev.Time))
				mu.Unlock()
				told.Add(1)
			}
		})
	}
	for range stalled {
		c := s.dial()
		c.conn.(*net.TCPConn).SetReadBuffer(4096)
		c.want("SUBSCRIBE bans", `["subscribe" "bans" 1]`)
	}
	// Events of a kilobyte fill what the kernel buffers for a client that does not read.
	key, reason := strings.Repeat("k", 900), strings.Repeat("r", 200)
	var full, cut time.Time // when they had no buffer left, when they were disconnected
	note := func() {
		if full.IsZero() && s.writing() >= stalled {
			full = time.Now()
		}
		if cut.IsZero() && int(s.Subscribers.Load()) == healthy {
			cut = time.Now()
		}
	}
	for i := range events {
		must.Get(s.Engine.Bans().Ban("login", []string{fmt.Sprint(key, i)}, time.Hour, reason, ""))(t)
		until(t, "all who read have read the event", func() bool { return told.Load() == int64((i+1)*healthy) })
		note()
	}
	wg.Wait()
	if long() {
		until(t, "who does not read is cut", func() bool { return int(s.Subscribers.Load()) <= healthy })
		note()
		t.Logf("all who do not read were cut %v after their buffers were full", cut.Sub(full))
	}
	if n := int(s.Subscribers.Load()); n < healthy {
		t.Errorf("%d subscribe; want the %d who read", n, healthy)
	}
	slices.Sort(late)
	t.Logf("%d deliveries to %d subscribers beside %d that do not read: p50 %v, p99 %v", len(late), healthy, stalled, late[len(late)/2], late[len(late)*99/100])
	if len(late) != healthy*events {
		t.Errorf("%d deliveries; want %d", len(late), healthy*events)
	}
}

// writing returns to how many the server is writing.
func (r *running) writing() (n int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for c := range r.conns {
		if c.writing.Load() != 0 {
			n++
		}
	}
	return n
}

// until waits until ok reports true.
func until(t testing.TB, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(time.Minute); !ok(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("it does not come to this within a minute: %s", what)
		}
	}
}

// TestPushStandsBetweenReplies has pushes and pipelined replies on one connection.
func TestPushStandsBetweenReplies(t *testing.T) {
	s := start(t, Config{}, false)
	c, admin := s.dial(), s.dial()
	c.want("HELLO 3", "%[…")
	c.want("SUBSCRIBE bans", `>["subscribe" "bans" 1]`)
	const bans, takes = 200, 5000
	go func() {
		var b []byte
		for range takes {
			b = append(b, encode("TAKE per-client a")...)
		}
		c.conn.Write(b)
	}()
	var wg sync.WaitGroup
	wg.Go(func() {
		for i := range bans {
			admin.want(fmt.Sprintf("BAN login u%d 1h", i), "+OK")
		}
	})
	pushes, replies := 0, int64(0)
	for pushes < bans || replies < takes {
		v := must.Get(c.r.Next())(t)
		if v.Kind == '>' {
			pushes++
			continue
		}
		if replies++; v.Elems[2].Int() != 1_000_000_000-replies {
			t.Fatalf("reply %d is %s", replies, show(v))
		}
	}
	wg.Wait()
}
