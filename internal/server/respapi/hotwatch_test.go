package respapi

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/lately-go/lately/api"
	"github.com/lately-go/lately/internal/test/must"
)

// update reads the next message and returns its update. form is how it begins.
func (c *caller) update(form string) (u api.HotUpdate) {
	c.t.Helper()
	v := must.Get(c.r.Next())(c.t)
	if got := show(v); !strings.HasPrefix(got, form) {
		c.t.Fatalf("sent %s; want %s…", got, form)
	}
	must.Do(c.t, json.Unmarshal([]byte(v.Elems[len(v.Elems)-1].Text), &u))
	return u
}

// text returns an update as text.
func text(u *api.HotUpdate) string {
	hot, cold := []string{}, []string{}
	for _, k := range u.Hot {
		hot = append(hot, strings.Join(k.Values(), ","))
	}
	for _, k := range u.Cold {
		cold = append(cold, strings.Join(k.Values(), ","))
	}
	slices.Sort(hot)
	return fmt.Sprintf("reset %t more %t rule %q hot %v cold %v changed %d", u.Reset, u.More, u.Rule, hot, cold, len(u.Changed))
}

func (c *caller) wantUpdate(form, want string) (u api.HotUpdate) {
	c.t.Helper()
	u = c.update(form)
	if got := text(&u); got != want {
		c.t.Errorf("sent %s; want %s", got, want)
	}
	return u
}

// heat makes a path hot.
func (c *caller) heat(path string) {
	c.t.Helper()
	for range 3 {
		c.want("CHECK path "+path, "[1 …")
	}
}

func TestHotWatch(t *testing.T) {
	s := start(t, Config{}, false)
	admin, two, three, plain := s.dial(), s.dial(), s.dial(), s.dial()
	admin.heat("/product/1")
	two.want("HOT.WATCH product", `["subscribe" "hot.watch:product" 1]`)
	three.want("HELLO 3", `%[…`)
	three.want("HOT.WATCH", "+OK")
	plain.want("SUBSCRIBE hot.watch bans", `["subscribe" "hot.watch" 1]`)
	if got := plain.next(); got != `["subscribe" "bans" 2]` {
		t.Errorf("the second answer is %s", got)
	}
	const message2, message, push = `["message" "hot.watch:product" `, `["message" "hot.watch" `, `>["hot" `
	const first = " more false rule %q hot [/product/1] cold [] changed 0"
	a := two.wantUpdate(message2, fmt.Sprintf("reset true"+first, "product"))
	b := three.wantUpdate(push, fmt.Sprintf("reset true"+first, ""))
	c := plain.wantUpdate(message, fmt.Sprintf("reset true"+first, ""))
	for _, u := range []api.HotUpdate{b, c} {
		if k, of := u.Hot[0], a.Hot[0]; u.Instance != a.Instance || u.From != 0 || u.Version != a.Version || !k.Until.Equal(of.Until) || k.Lo != 3 || k.Hi != 3 || k.TTL < 1 || k.TTL > 60_000 {
			t.Errorf("%+v; want %+v", u, a)
		}
	}

	admin.heat("/product/2")
	for _, u := range []api.HotUpdate{
		two.wantUpdate(message2, `reset false more false rule "product" hot [/product/2] cold [] changed 0`),
		three.wantUpdate(push, `reset false more false rule "" hot [/product/2] cold [] changed 0`),
		plain.wantUpdate(message, `reset false more false rule "" hot [/product/2] cold [] changed 0`),
	} {
		if u.From != a.Version || u.Version <= u.From {
			t.Errorf("an update from %d to %d; want from %d", u.From, u.Version, a.Version)
		}
	}

	// Commands of version 3 go on beside the pushes. To watch again begins again.
	three.want("HOT.LIST", "[[…")
	three.want("HOT.WATCH", "+OK")
	for known, first := map[string]bool{}, true; len(known) < 2; first = false { // the state may be up to 100 ms old
		u := three.update(push)
		if u.Reset != first {
			t.Errorf("to watch again begins with %+v", u)
		}
		for _, k := range u.Hot {
			known[k.Values()[0]] = true
		}
	}
	two.want("HOT.LIST", "-BADARG hot.list on a connection that subscribes…")
	two.want("UNSUBSCRIBE", `["unsubscribe" "hot.watch:product" 0]`)
	plain.want("UNSUBSCRIBE hot.watch", `["unsubscribe" "hot.watch" 1]`)
	three.want("UNSUBSCRIBE hot.watch", `>["unsubscribe" "hot.watch" 0]`)
	two.want("PSUBSCRIBE hot.*", `["psubscribe" "hot.*" 1]`)
	admin.heat("/product/3")
	admin.want("BAN login z 1m", "+OK")
	if got := plain.next(); !strings.HasPrefix(got, `["message" "bans" `) {
		t.Errorf("received %s after the watch ended", got)
	}
	two.want("PING", `["pong" ""]`)
	three.want("PING", "+PONG")
}

// A state of more than 64 KiB comes in parts, beside one that is slow to read it.
func TestHotWatchParts(t *testing.T) {
	s := start(t, Config{}, false)
	admin := s.dial()
	var b []byte
	const keys = 1500
	for i := range keys {
		for range 3 { // CHECK is one event, whatever it costs
			b = append(b, encode(fmt.Sprintf("CHECK path /product/%s%d COST 3", strings.Repeat("x", 100), i))...)
		}
	}
	go admin.conn.Write(b)
	for range 3 * keys {
		admin.next()
	}
	slow, c := s.dial(), s.dial()
	slow.send("HOT.WATCH") // and never reads
	c.want("HOT.WATCH", `["subscribe" "hot.watch" 1]`)
	known, parts := map[string]bool{}, 0
	for more := true; more || len(known) < keys; parts++ {
		u := c.update(`["message" "hot.watch" "{`)
		if more = u.More; u.Reset != (parts == 0) {
			t.Fatalf("part %d has reset %t", parts, u.Reset)
		}
		for _, k := range u.Hot {
			known[k.Values()[0]] = true
		}
	}
	if len(known) != keys || parts < 3 {
		t.Errorf("%d keys in %d parts; want %d", len(known), parts, keys)
	}
}

// A watcher that does not read delays no other, and is disconnected.
func TestSlowHotWatcher(t *testing.T) {
	s := start(t, Config{}, false)
	admin, slow, c := s.dial(), s.dial(), s.dial()
	slow.want("HOT.WATCH", `["subscribe" "hot.watch" 1]`)
	c.want("HOT.WATCH", `["subscribe" "hot.watch" 1]`)
	c.update(`["message" "hot.watch" "{`)
	known := map[string]bool{}
	for i := 0; i < 40 || long() && s.Cut.Load() == 0; i++ {
		path := fmt.Sprintf("/product/%s%d", strings.Repeat("x", 900), i)
		admin.heat(path)
		for !known[path] {
			u := c.update(`["message" "hot.watch" "{`)
			for _, k := range u.Hot {
				known[k.Values()[0]] = true
			}
		}
	}
	if !long() {
		t.Skip("SKIP: the rest takes the 4 s in which a client must read; set LATELY_LONG=1")
	}
	for {
		if _, err := slow.r.Next(); err != nil {
			break
		}
	}
	if n := s.Subscribers.Load(); n != 1 {
		t.Errorf("%d subscribers", n)
	}
}
