//go:build linux

package storm

import (
	"cmp"
	"fmt"
	"net/http"
	"os"
	"slices"
	"strings"
	"time"
)

// spreads is how long a ban may take to be in force everywhere: 250 ms and two round trips are documented, the rest is for
// round trips on a busy machine.
const spreads = 1500 * time.Millisecond

// recovers is how long a connection that has lost a reply to damage may be used further, see docs/redis.md.
const recovers = 2 * time.Second

// An order is a ban that began, or that was ended by hand.
type order struct {
	call  *Call
	rule  string
	key   string
	ban   bool
	local bool // it may be on one server only, or not be on disk
}

// orders returns the orders about a key under a rule, in order of time.
func (r *run) orders(rule, key string) (all []order) {
	for i := range r.history.calls {
		c := &r.history.calls[i]
		switch {
		case c.Rule == rule && c.Key == key && (c.Verb == verbBan || c.Verb == verbUnban):
			all = append(all, order{call: c, rule: rule, key: key, ban: c.Verb == verbBan})
		case c.Banned == rule && rule != byHand && (c.Key == key || c.Client == key) && len(all) == 0:
			local := r.Config.Store && r.mayFallBack(c.Server, c.Start, c.End)
			all = append(all, order{call: c, rule: rule, key: key, ban: true, local: local})
		}
	}
	return all
}

// bansHold judges that a ban is in force where and when it must be, and not after it was ended.
func (r *run) bansHold() {
	about := func(rule string, keys []string) {
		for _, key := range keys {
			all := r.orders(rule, key)
			for i := range r.history.calls {
				c := &r.history.calls[i]
				if judgesBan(c, rule, key) && !r.obeys(c, all) {
					break
				}
			}
		}
	}
	about(byHand, slices.Concat(handKeys, []string{lastKey}))
	about(knock, knockers)
}

// judgesBan reports whether a call was judged under a rule and key of bans.
func judgesBan(c *Call, rule, key string) bool {
	if !c.Answered || c.Verb != verbTake && c.Verb != verbCheck {
		return false
	}
	return c.Rule == rule && c.Key == key || c.Rule == "" && c.Client == key && c.Path == "/"+rule
}

// obeys judges one call by the last order before it.
func (r *run) obeys(c *Call, all []order) bool {
	last := -1
	for i, o := range all {
		if o.call.Start <= c.End {
			last = i
		}
	}
	if last < 0 || !all[last].call.Answered || all[last].call == c || all[last].call.End > c.Start || !r.mustKnow(c, all[last]) {
		return true
	}
	o := all[last]
	what := ""
	switch {
	case o.ban && c.Allowed:
		what = "allowed, though the ban is in force here"
	case !o.ban && c.Banned == o.rule:
		what = "banned, though the ban was ended"
	default:
		return true
	}
	r.fail("bans", fmt.Sprintf("%s %s: %s: %v", o.rule, o.key, what, c), func(x *Call) bool {
		return judgesBan(x, o.rule, o.key) || x.Rule == o.rule && x.Key == o.key
	})
	return false
}

// mustKnow reports whether the server that answers c must have received an order.
func (r *run) mustKnow(c *Call, o order) bool {
	h := r.history
	if o.local {
		return false
	}
	began := r.lifeBegan(c.Server, c.Life)
	same := c.Server == o.call.Server && c.Life == o.call.Life && began <= o.call.Start
	if !r.Config.Store {
		if same {
			return true
		}
		survives := r.Config.Data && len(h.overlapping(0, o.call.End, c.Start, fullDisk)) == 0
		if o.rule != byHand { // on disk within a second
			survives = survives && len(h.overlapping(0, o.call.Start, o.call.End+spreads+r.pulse.margin(0), killed)) == 0
		}
		return survives
	}
	if len(h.overlapping(everyServer, o.call.Start-spreads, c.End, restored)) > 0 {
		return false
	}
	return same && o.ban || r.calm(c.Server, max(o.call.End, began), c.Start)
}

// lifeBegan returns when a process of a server began to accept calls.
func (r *run) lifeBegan(server, life int) (began time.Duration) {
	for _, m := range r.history.marks {
		if m.Server == server && (m.Kind == killed || m.Kind == ended) {
			if life--; life == 0 {
				return began
			}
			began = m.To
		}
	}
	return began
}

// calm reports whether a server had time to receive a change between two times: it and the store
// were without faults for long enough.
func (r *run) calm(server int, from, to time.Duration) bool {
	needs := spreads + r.pulse.margin(0)
	disturbed := r.history.overlapping(server, from, to, stopped, killed, ended, away, restored)
	slices.SortFunc(disturbed, func(a, b *Mark) int { return int(a.From - b.From) })
	for _, m := range disturbed {
		if m.From-from >= needs {
			return true
		}
		if m.To == 0 {
			return false
		}
		from = max(from, m.whole())
	}
	return to-from >= needs
}

// whole returns when the connections are whole again after a fault.
func (m *Mark) whole() time.Duration {
	if m.Note == damages.String() {
		return m.To + recovers
	}
	return m.To
}

// wholeAgain returns when the connections are whole again after all faults, but not before a time.
func (r *run) wholeAgain(at time.Duration) time.Duration {
	for _, m := range r.history.marks {
		at = max(at, m.whole())
	}
	return at
}

// lastKey is banned at the end, when all faults are over.
const lastKey = "198.51.100.99"

// lastBan bans a key on one server, and requires it on all: in decisions, in the list of bans and in the number of bans.
func (r *run) lastBan() {
	random := source(r.Config.Seed, "last ban")
	from := r.servers[random.IntN(len(r.servers))]
	for over := r.now(); !r.byHand(from, verbBan, lastKey); time.Sleep(20 * time.Millisecond) {
		if r.now()-r.wholeAgain(over) > spreads+r.pulse.margin(over) { // damaged replies are read first
			r.fail("bans", fmt.Sprintf("server %d does not ban a key by hand, though all faults are over", from.index), func(c *Call) bool { return c.Key == lastKey })
			return
		}
	}
	begun := r.now()
	for _, s := range r.servers {
		for {
			what := r.lacks(s)
			if what == "" {
				break
			}
			if took := r.now() - begun; r.now()-r.wholeAgain(begun) > spreads+r.pulse.margin(begun) {
				r.fail("bans", fmt.Sprintf("server %d %s %v after a ban on server %d was acknowledged", s.index, what, took, from.index), func(c *Call) bool { return c.Key == lastKey || c.Verb == verbBan || c.Verb == verbUnban })
				return
			}
			time.Sleep(20 * time.Millisecond)
		}
	}
}

// lacks returns how a server shows that it lacks the last ban, or "".
func (r *run) lacks(s *server) string {
	c, err := s.dial()
	if err != nil {
		return fmt.Sprintf("cannot be reached (%v)", err)
	}
	defer c.Close()
	call := Call{Verb: verbTake, Rule: byHand, Key: lastKey, Cost: 1}
	if !r.judge(s, c, call) {
		return "does not answer"
	}
	n, err := s.metric("lately_bans", `rule="`+byHand+`"`)
	if want := r.heldByHand(); err != nil || want >= 0 && int(n) != want {
		return fmt.Sprintf("has lately_bans %v of the rule %s, want %d (%v);", n, byHand, want, err)
	}
	if text, _ := os.ReadFile(s.denyPath()); r.Config.DenyFile && !strings.Contains(string(text), lastKey) {
		return "has no such line in its deny file"
	}
	if code, text, err := s.get("/v1/bans?limit=1000"); err != nil || code != http.StatusOK {
		return fmt.Sprintf("does not list its bans: %d %s (%v);", code, text, err)
	}
	return ""
}

// heldByHand returns how many bans by hand hold, or -1 if that is not certain.
func (r *run) heldByHand() (n int) {
	r.history.mu.Lock()
	defer r.history.mu.Unlock()
	for _, key := range slices.Concat(handKeys, []string{lastKey}) {
		all := r.orders(byHand, key)
		if len(all) == 0 {
			continue
		}
		last := slices.MaxFunc(all, func(a, b order) int { return cmp.Compare(a.call.End, b.call.End) })
		undecided := func(o order) bool { return o.ban != last.ban && o.call.End >= last.call.Start } // either may have come last
		switch {
		case !last.call.Answered, slices.ContainsFunc(all, undecided):
			return -1
		case last.ban:
			n++
		}
	}
	if len(r.history.overlapping(everyServer, 0, r.now(), restored)) > 0 || !r.Config.Store && !r.Config.Data && r.servers[0].life > 1 {
		return -1
	}
	return n
}
