//go:build linux

package storm

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"
)

// A Call is one call of a client. Its times are since the seed began.
type Call struct {
	Start, End time.Duration
	Server     int
	Life       int    // of the process, when it was sent
	By, Verb   string // such as RESP, TAKE
	Rule, Key  string // of a call about one rule; Rule is "" if all rules judge
	Client     string // fields of an event
	User, Path string
	Cost       uint64

	Answered bool // the answer is not an error
	Allowed  bool
	Changed  bool   // an order had an effect
	Banned   string // the rule whose ban refused it
	Until    int64  // when that ban ends
	Text     string // of an error, or an answer without a decision

	From, To time.Duration // when it can have happened: Start and End, or the time that it has itself
}

// String describes c in a line.
func (c *Call) String() string {
	subject := c.Rule + " " + c.Key
	if c.Rule == "" {
		subject = strings.TrimSpace(fmt.Sprintf("client %s user %q path %s", c.Client, c.User, c.Path))
	}
	answer := "error or no answer: " + c.Text[:min(len(c.Text), 200)]
	switch {
	case c.Answered && c.Banned != "":
		answer = "banned by " + c.Banned
	case c.Answered && c.Allowed:
		answer = "allowed"
	case c.Answered:
		answer = "refused " + c.Text
	}
	own := ""
	if c.From != c.Start {
		own = fmt.Sprintf(" at %s", millis(c.From))
	}
	return fmt.Sprintf("%s to %s  server %d life %d  %s %s %s cost %d%s: %s", millis(c.Start), millis(c.End), c.Server, c.Life, c.By, c.Verb, subject, c.Cost, own, answer)
}

func millis(d time.Duration) string { return fmt.Sprintf("%9.3f ms", float64(d)/1e6) }

// A Mark is something that was done to servers or to the store.
type Mark struct {
	From, To time.Duration // To is 0 while it lasts
	Server   int           // everyServer for all
	Kind     markKind
	Note     string
}

const everyServer = -1

type markKind string

const (
	stopped        markKind = "stopped"         // SIGSTOP to SIGCONT
	killed         markKind = "killed"          // SIGKILL to the next start
	ended          markKind = "terminated"      // SIGTERM to the next start
	away           markKind = "store away"      // the proxy passes on nothing, or what it should not
	restored       markKind = "store restarted" // empty
	fullDisk       markKind = "disk full"
	fewDescriptors markKind = "few descriptors"
	flooded        markKind = "flooded"
	rotated        markKind = "log rotated"
	reloaded       markKind = "rules changed"
)

// A change puts a version of the rules file in force on a server.
type change struct {
	server, version int
	from            time.Duration // when it may have been in force first
	sure            time.Duration // when it was certainly in force; 0 if unknown
}

// A History is what happened in a seed. It is safe for concurrent use.
type History struct {
	began time.Time

	mu        sync.Mutex
	calls     []Call
	marks     []*Mark
	changes   []*change
	fallbacks map[int]bool // servers that have decided without the store
}

func newHistory() *History { return &History{began: time.Now(), fallbacks: make(map[int]bool)} }

// now returns the time since the seed began.
func (h *History) now() time.Duration { return time.Since(h.began) }

// add records a call that has ended.
func (h *History) add(c Call) {
	if c.To == 0 {
		c.From, c.To = c.Start, c.End
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.calls = append(h.calls, c)
}

// begin records that something begins; end records its end.
func (h *History) begin(server int, kind markKind, note string) *Mark {
	m := &Mark{From: h.now(), Server: server, Kind: kind, Note: note}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.marks = append(h.marks, m)
	return m
}

func (h *History) end(m *Mark) {
	h.mu.Lock()
	defer h.mu.Unlock()
	m.To = h.now()
}

func (h *History) fellBack(server int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.fallbacks[server] = true
}

// overlapping returns the marks of kinds for a server that overlap a time.
func (h *History) overlapping(server int, from, to time.Duration, kinds ...markKind) (found []*Mark) {
	for _, m := range h.marks {
		if slices.Contains(kinds, m.Kind) && (m.Server == server || m.Server == everyServer || server == everyServer) && m.From <= to && (m.To == 0 || m.To >= from) {
			found = append(found, m)
		}
	}
	return found
}

// write records that a rules file is about to have another version.
func (h *History) write(server, version int) *change {
	c := &change{server: server, version: version, from: h.now()}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.changes = append(h.changes, c)
	return c
}

// inForce records that the newest version of a server's file is in force.
func (h *History) inForce(server int) {
	now := h.now()
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, c := range slices.Backward(h.changes) {
		if c.server == server {
			if c.sure == 0 {
				c.sure = now
			}
			return
		}
	}
}

// versions returns which versions may have been in force on any server between two times, in the order of each server.
func (h *History) versions(from, until time.Duration) (all []int) {
	newest := make(map[int]bool) // servers whose version at from is known
	for _, c := range slices.Backward(h.changes) {
		if c.from <= until && !newest[c.server] {
			all = append(all, c.version)
			newest[c.server] = c.sure > 0 && c.sure <= from
		}
	}
	slices.Reverse(all)
	return all
}

// print returns the calls that are about something and all marks, in order of time.
func (h *History) print(about func(*Call) bool) string {
	type line struct {
		at   time.Duration
		text string
	}
	var lines []line
	for i := range h.calls {
		if c := &h.calls[i]; about(c) {
			lines = append(lines, line{c.Start, c.String()})
		}
	}
	for _, m := range h.marks {
		to := "the end"
		if m.To > 0 {
			to = millis(m.To)
		}
		who := "all"
		if m.Server != everyServer {
			who = fmt.Sprint("server ", m.Server)
		}
		lines = append(lines, line{m.From, fmt.Sprintf("%s to %s  ---- %s: %s %s", millis(m.From), to, who, m.Kind, m.Note)})
	}
	slices.SortStableFunc(lines, func(a, b line) int { return cmp.Compare(a.at, b.at) })
	var b strings.Builder
	for _, l := range lines {
		b.WriteString("    " + l.text + "\n")
	}
	return b.String()
}
