package cli

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/lately-go/lately/internal/test/must"
	"github.com/lately-go/lately/internal/test/randtest"
)

const serveRules = `version: 1
counters:
  requests: {key: client, spans: [1s, 1h]}
limits:
  - name: per-client
    key: client
    limit: 100 per 1h
    ban: {after: 5 refusals in 1h, for: 1h}
bans:
  - {name: login, key: [client, user], after: 1000 hits in 1h, for: 1h}
`

func writeRules(t testing.TB, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "rules.yaml")
	must.Do(t, os.WriteFile(path, []byte(text), 0o600))
	return path
}

// Without any flag, a server on loopback counts at once and shuts down in order.
func TestServeWithoutFlags(t *testing.T) {
	s := serve(t)
	c := s.dial()
	for _, x := range [][2]string{
		{"PING", "PONG"},
		{"ADD hits ada 3", "OK"},
		{"SUM hits ada", "3"},
		{"TOP hits 5 SPAN 1m", "[ada 3]"},
		{"CL.THROTTLE user123 15 30 60 1", "[0 16 15 -1 2]"},
		{"TAKE nothing k", `NORULE`},
	} {
		if got := c.say(strings.Fields(x[0])...); got != x[1] && !strings.HasPrefix(got, x[1]+" ") {
			t.Errorf("%s: %s, want %s", x[0], got, x[1])
		}
	}
	answer := must.Get(http.Post(s.http+"/v1/check", "application/json", strings.NewReader(`{"event":{"client":"192.0.2.1"}}`)))(t)
	body, _ := io.ReadAll(answer.Body)
	answer.Body.Close()
	if answer.StatusCode != 200 || !strings.Contains(string(body), `"allowed":true`) {
		t.Errorf("%d %s", answer.StatusCode, body)
	}
	http.DefaultClient.CloseIdleConnections()
	if err := s.end(); err != nil {
		t.Errorf("it ends with %v\n%s", err, s.log.String())
	}
}

// A missing token file is created. The log, in the requested format, has its path and none of its tokens.
func TestServeMakesTokens(t *testing.T) {
	path := filepath.Join(t.TempDir(), "tokens")
	s := serve(t, "--token-file", path, "--log-format", "json")
	text := must.Get(os.ReadFile(path))(t)
	c := s.dial()
	if got := c.say("ADD", "hits", "ada"); !strings.HasPrefix(got, "NOAUTH") {
		t.Errorf("without a token: %s", got)
	}
	for line := range strings.Lines(string(text)) {
		if f := strings.Fields(line); f[0] != "#" {
			if got := c.say("AUTH", f[1]); got != "OK" {
				t.Errorf("the token of %s: %s", f[0], got)
			}
			if strings.Contains(s.log.String(), f[1]) {
				t.Errorf("the log has the token of %s", f[0])
			}
		}
	}
	if got := c.say("ADD", "hits", "ada"); got != "OK" {
		t.Errorf("by the last of the tokens: %s", got)
	}
	line, _, _ := strings.Cut(s.log.String(), "\n")
	var said struct{ Level, Msg, File string }
	if err := json.Unmarshal([]byte(line), &said); err != nil || said.File != path || said.Level != "WARN" {
		t.Errorf("in the log: %s (%v)", line, err)
	}
}

// A second server cannot use the same directory.
func TestServeLocksItsDirectory(t *testing.T) {
	dir := t.TempDir()
	s := serve(t, "--data", dir)
	var out, errs lines
	code := run(t.Context(), []string{"serve", "--resp", "127.0.0.1:0", "--http", "off", "--data", dir}, strings.NewReader(""), &out, &errs)
	if code != exitUsage || !strings.Contains(errs.String(), strconv.Itoa(s.cmd.Process.Pid)) {
		t.Errorf("code %d: %s", code, errs.String())
	}
}

// A server that was shut down starts with the same counts and bans.
func TestServeComesBack(t *testing.T) {
	dir, rules := t.TempDir(), writeRules(t, serveRules)
	s := serve(t, "--data", dir, "--rules", rules)
	c := s.dial()
	for range 110 {
		c.say("CHECK", "client", "192.0.2.1")
	}
	for range 7 {
		c.say("CHECK", "client", "2001:db8::1")
	}
	c.say("ADD", "made", "k", "42")
	if got := c.say("BAN", "login", "192.0.2.9\teve", "30m", "because"); strings.HasPrefix(got, "BADARG") {
		t.Fatal(got)
	}
	state := func(c *talker) (state []string) {
		for _, q := range []string{"PEEK per-client 192.0.2.1", "PEEK per-client 2001:db8::1", "SUM requests 192.0.2.1", "SUM requests 2001:db8:0::", "SUM made k"} {
			f := strings.Fields(c.say(strings.Fields(q)...))
			if len(f) == 7 {
				f[3], f[4], f[6] = "", "", f[6][:min(len(f[6]), 9)] // what depends on the moment
			}
			state = append(state, fmt.Sprint(f))
		}
		var bans []string
		v := must.Get(c.do("BANS"))(t)
		for _, b := range v.Elems {
			bans = append(bans, inLine(b))
		}
		return append(state, bans...)
	}
	want := state(c)
	must.Do(t, s.end())
	s = serve(t, "--data", dir, "--rules", rules)
	if got := state(s.dial()); strings.Join(got, "\n") != strings.Join(want, "\n") || len(want) != 7 {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// Rules are read again by polling and on SIGHUP, without losing a count; a file with
// mistakes leaves the rules in force.
func TestServeReloads(t *testing.T) {
	rules := writeRules(t, serveRules)
	s := serve(t, "--rules", rules, "--rules-poll", "20ms")
	c := s.dial()
	for range 10 {
		c.say("TAKE", "per-client", "192.0.2.1")
	}
	limitIs := func(want string) bool {
		return eventually(func() bool {
			f := strings.Fields(c.say("PEEK", "per-client", "192.0.2.1"))
			return len(f) == 7 && f[1] == want
		})
	}
	write := func(text string) {
		must.Do(t, os.WriteFile(rules, []byte(text), 0o600))
	}
	write(strings.Replace(serveRules, "100 per 1h", "50 per 1h", 1))
	if !limitIs("50") {
		t.Fatalf("the change is not seen\n%s", s.log.String())
	}
	if got := strings.Fields(c.say("PEEK", "per-client", "192.0.2.1"))[2]; got != "39" {
		t.Errorf("after the change %s are left, want 39", got)
	}
	write("version: 1\nlimits: [{nam: per-client}]\n")
	if !eventually(func() bool { return strings.Contains(s.log.String(), "nam") }) {
		t.Fatalf("the log does not name the mistake, the key nam\n%s", s.log)
	}
	if !limitIs("50") {
		t.Error("a file with mistakes has changed the rules")
	}
	write(strings.Replace(serveRules, "100 per 1h", "60 per 1h", 1))
	must.Do(t, s.cmd.Process.Signal(syscall.SIGHUP))
	if !limitIs("60") {
		t.Errorf("the change is not seen\n%s", s.log.String())
	}
}

// A process that is killed at any moment loses no ban that it has acknowledged, and
// never comes back with more than was counted, or with a ban that was unbanned.
func TestServeKilled(t *testing.T) {
	rounds := 20
	switch {
	case os.Getenv("LATELY_LONG") != "":
		rounds = 200
	case testing.Short():
		rounds = 5
	}
	seed := randtest.Seed(t)
	rnd := rand.New(rand.NewPCG(seed, 0))
	dir, rules := t.TempDir(), writeRules(t, serveRules)
	k := &killed{t: t}
	for round := range rounds {
		s := serve(t, "--data", dir, "--rules", rules, "--snapshot-every", "1s")
		k.check(s, round, false)
		stop := k.load(s, round)
		time.Sleep(time.Duration(rnd.IntN(400)) * time.Millisecond)
		if round%5 == 4 {
			time.Sleep(time.Second) // a snapshot under load
			if !eventually(func() bool { return k.enough(round + 1) }) {
				t.Fatalf("next to nothing was acknowledged: the test has no teeth\n%s", s.log)
			}
		}
		s.kill()
		stop()
	}
	s := serve(t, "--data", dir, "--rules", rules)
	k.check(s, rounds, true)
	t.Logf("%d rounds, %d bans, %d unbans and %d counts acknowledged", rounds, len(k.banned), len(k.unbanned), k.counted.Load())
}

// killed is what a client of killed servers was acknowledged.
type killed struct {
	t        testing.TB
	mu       sync.Mutex
	banned   []string // acknowledged
	unbanned []string // again, acknowledged
	sent     atomic.Uint64
	counted  atomic.Uint64 // acknowledged
}

// enough reports whether servers have acknowledged a ban a round, an unban and a count.
func (k *killed) enough(rounds int) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return len(k.banned) >= rounds && len(k.unbanned) > 0 && k.counted.Load() > 0
}

// load bans and counts until the returned function is called after the server's end.
func (k *killed) load(s *serving, round int) (stop func()) {
	var wg sync.WaitGroup
	for g := range 3 {
		c := s.dial()
		wg.Go(func() {
			for i := 0; ; i++ {
				user := fmt.Sprintf("192.0.2.1\tu%d-%d-%d", round, g, i)
				if _, err := c.do("BAN", "login", user, "1h"); err != nil {
					return
				}
				unbanned := false
				if i%2 == 1 {
					if _, err := c.do("UNBAN", "login", user); err != nil {
						return // on its way: it may hold or not
					}
					unbanned = true
				}
				k.mu.Lock()
				if unbanned {
					k.unbanned = append(k.unbanned, user)
				} else {
					k.banned = append(k.banned, user)
				}
				k.mu.Unlock()
			}
		})
	}
	c := s.dial()
	wg.Go(func() {
		for {
			k.sent.Add(1)
			if _, err := c.do("ADD", "counted", "k"); err != nil {
				return
			}
			k.counted.Add(1)
		}
	})
	return wg.Wait
}

// check compares the bans and counts of a restarted server.
func (k *killed) check(s *serving, round int, last bool) {
	c := s.dial()
	// Each time the bans of the previous round; at the end all, one round at a time, since a list has a maximum length.
	filter := fmt.Sprintf("u%d-", round-1)
	held := s.bans(filter)
	if last {
		filter = ""
		for r := range round {
			maps.Copy(held, s.bans(fmt.Sprintf("u%d-", r)))
		}
	}
	for _, user := range k.banned {
		if strings.Contains(user, filter) && !held[user] {
			k.t.Fatalf("round %d: the ban of %q was acknowledged and is lost; %d of %d are there\n%s", round, user, len(held), len(k.banned), s.log.String())
		}
	}
	for _, user := range k.unbanned {
		if held[user] {
			k.t.Fatalf("round %d: the ban of %q was unbanned, and is back\n%s", round, user, s.log.String())
		}
	}
	if v, err := c.do("SUM", "counted", "k"); err == nil && uint64(v.Int()) > k.sent.Load() {
		k.t.Fatalf("round %d: the counter has %d, and %d were sent", round, v.Int(), k.sent.Load())
	}
}

// bans returns the keys of all active bans that contain text, their values joined by tabs.
func (s *serving) bans(text string) map[string]bool {
	s.t.Helper()
	held := make(map[string]bool)
	for cursor := ""; ; {
		answer := must.Get(http.Get(fmt.Sprintf("%s/v1/bans?limit=1000&cursor=%s&q=%s", s.http, cursor, text)))(s.t)
		var page struct {
			Bans []struct {
				Key []string `json:"key"`
			} `json:"bans"`
			Next string `json:"next"`
		}
		must.Do(s.t, json.NewDecoder(answer.Body).Decode(&page))
		answer.Body.Close()
		for _, b := range page.Bans {
			held[strings.Join(b.Key, "\t")] = true
		}
		if cursor = page.Next; cursor == "" {
			return held
		}
	}
}
