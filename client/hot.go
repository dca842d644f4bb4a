package client

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strconv"
	"sync"
	"time"

	"github.com/lately-go/lately/hotkey"
	"github.com/lately-go/lately/internal/resp"
	"github.com/lately-go/lately/internal/wait"
	"github.com/lately-go/lately/match"
)

// A hot connects a Detector to the nodes of a fleet. What the Detector counts is added up in
// a tally, which the goroutine run sends to the nodes of the keys. Messages of the
// nodes about hot keys are passed on to the Detector by the readers of their connections.
type hot struct {
	f      *Fleet
	d      *hotkey.Detector
	rules  []hotRule
	tally  *tally
	urgent chan struct{}
	caches [][4]uint64 // by rule, what was sent to nodes: hits, misses, loads, stale
	stats  hotLedger

	command []byte // scratch of run

	watching sync.Mutex          // for what follows, and watch of all nodes
	holds    map[hotID]time.Time // the end of the hold of each key that a node has said to be hot
	watchers map[*hotWatcher]struct{}
}

// A hotRule has the used fields of a rule of the Detector.
type hotRule struct {
	name   string
	key    match.Key
	fields int
}

// earlyShare is which share of a threshold in one process makes a report urgent.
const earlyShare = 8

func newHot(f *Fleet, d *hotkey.Detector) *hot {
	h := &hot{f: f, d: d, urgent: make(chan struct{}, 1), holds: make(map[hotID]time.Time), watchers: make(map[*hotWatcher]struct{})}
	var early []uint64
	for _, r := range d.Rules() {
		h.rules = append(h.rules, hotRule{r.Name, r.Key, len(r.Key.Fields())})
		early = append(early, max(1, r.Threshold/earlyShare))
	}
	h.caches = make([][4]uint64, len(h.rules))
	h.tally = newTally(maxPending, early, func() {
		select {
		case h.urgent <- struct{}{}:
		default:
		}
	})
	d.Forward(func(rule int, key string, n uint64, at time.Time, hot bool) {
		h.tally.add(rule, key, n, at.UnixNano(), hot)
	})
	return h
}

// link fills in how the connection of a node for hot keys begins.
func (h *hot) link(n *node) {
	h.f.connect(&n.hot, n.addr)
	n.watch.keys = make(map[hotID]struct{})
	n.reports = make([]outgoing, len(h.rules))
	n.hot.push = func(values []resp.Value) { h.pushed(n, values) }
	n.hot.begin = func(ctx context.Context, p *pipe) error {
		_, err := p.ask(ctx, parseOK, "", "HOT.WATCH")
		return err
	}
}

// Changed notifies all processes of the fleet that the value of a key has changed at its source,
// or was deleted: their caches remove the value, and load it at the next use. Call it after the
// change. It is safe to call it again after any error.
//
// Processes that are connected to the node of the key receive it within about 10 ms,
// others when they have connected again. If that node is lost, each process keeps the old
// value until it loads it again at the TTL of the rule, or until its maximum age if loads
// fail.
func (f *Fleet) Changed(ctx context.Context, rule string, key ...string) error {
	if f.hot != nil {
		if r := f.hot.rule(rule); r != nil {
			joined, err := r.key.Join(nil, key...)
			if err != nil {
				return err
			}
			f.hot.under(rule).Changed(string(joined))
		}
	}
	nodes, err := f.nodes(ctx)
	if err != nil {
		return err
	}
	var failed []error
	told := 0
	for _, n := range nodes {
		p, err := n.commands.get(ctx)
		if err == nil {
			_, err = p.ask(ctx, parseInt, "", append([]string{"HOT.CHANGED", rule}, key...)...)
		}
		switch {
		case err == nil:
			told++
		case errors.Is(err, errNotSent): // the connection ended as it was used
			failed = append(failed, fmt.Errorf("%w: %w", ErrNoNode, n.named(err)))
		case !n.commands.down():
			failed = append(failed, n.named(err))
		}
	}
	if told == 0 && failed == nil {
		return ErrNoNode
	}
	return errors.Join(failed...)
}

const (
	// maxPending bounds what is counted and not sent, in bytes.
	maxPending = 4 << 20

	// The time between two flushes is from fastest to slowest: longer while nodes are slow
	// to answer. After an urgent report it is urgentFlush.
	fastestFlush = 20 * time.Millisecond
	slowestFlush = 100 * time.Millisecond
	urgentFlush  = 5 * time.Millisecond

	// tellCaches is how often the statistics of caches are sent to nodes.
	tellCaches = time.Second

	// maxUnderWay bounds the reports to a node that have no answer. More are kept in the
	// tally, which adds them up.
	maxUnderWay = 16

	maxReportArgs  = 1024      // arguments of a command
	maxReportBytes = 512 << 10 // of a command; servers take twice as much
	maxReportValue = 1024      // bytes of a value
	maxReportCount = 1 << 31   // of a record
	maxReportAge   = math.MaxInt64 / int64(time.Millisecond)
)

// run sends what was counted, until the fleet is closed, and once more then.
func (h *hot) run() {
	period, told := fastestFlush, time.Now()
	timer := time.NewTimer(period)
	defer timer.Stop()
	var last time.Time
	for {
		urgent := false
		select {
		case <-h.f.ctx.Done():
			h.finish()
			return
		case <-h.urgent:
			urgent = wait.For(h.f.ctx, max(0, urgentFlush-time.Since(last))) == nil
		case <-timer.C:
		}
		last = time.Now()
		busy := h.flush()
		switch {
		case busy:
			period = min(2*period, slowestFlush)
		case !urgent:
			period = max(period/2, fastestFlush)
		}
		if last.Sub(told) >= tellCaches {
			h.tellCaches()
			told = last
		}
		timer.Reset(period)
	}
}

// finish sends the rest, and waits for the answers, up to their timeout.
func (h *hot) finish() {
	h.d.Forward(nil)
	h.flush()
	h.tellCaches()
	var wg sync.WaitGroup
	for _, n := range h.f.members.now() {
		wg.Go(func() { n.hot.settle(context.Background()) })
	}
	wg.Wait()
}

// An outgoing is a report to a node under one rule that is being written.
type outgoing struct {
	args   []byte // values, counts and ages
	n      int    // how many
	events uint64
}

// flush sends what was counted to the nodes of the keys. It reports whether a part was
// put back, because a node is busy or none is up.
func (h *hot) flush() (busy bool) {
	h.stats.taking.Lock()
	defer h.stats.taking.Unlock()
	var nodes []*node // that are up, or are being connected to
	for _, n := range h.f.members.now() {
		if !n.hot.down() {
			nodes = append(nodes, n)
		}
	}
	now := h.d.Now().UnixNano()
	h.tally.take(func(r tallyRecord) {
		if !h.report(nodes, r, now) {
			h.tally.putBack(r)
			busy = true
		}
	})
	for _, n := range nodes {
		for i := range n.reports {
			h.ship(n, i)
		}
	}
	return busy
}

// report writes a record for the node of its key. It returns false if that must wait.
func (h *hot) report(nodes []*node, r tallyRecord, now int64) bool {
	rule := &h.rules[r.rule]
	hash, fits := rule.hashKey(r.key)
	if !fits {
		h.stats.drop(r.n)
		return true
	}
	n, _ := choose(nodes, hash, math.MaxUint64)
	if n == nil || n.hot.live.Load() == nil || n.underWay.Load() >= maxUnderWay {
		return false
	}
	age := min(max(0, now-r.at)/int64(time.Millisecond), maxReportAge)
	out := &n.reports[r.rule]
	for left := r.n; left > 0; {
		part := min(left, maxReportCount)
		left -= part
		if out.n+rule.fields+2 > maxReportArgs-2 || len(out.args) > maxReportBytes {
			h.ship(n, r.rule)
		}
		for v := range rule.key.Parts([]byte(r.key)) {
			out.args = resp.AppendBulk(out.args, v)
		}
		out.args = resp.AppendBulkInt(resp.AppendBulkInt(out.args, int64(part)), age)
		out.n += rule.fields + 2
		out.events += part
	}
	return true
}

// hashKey returns the hash of a key for choose. fits is false if it has other values than
// the rule, or one that is too long.
func (r *hotRule) hashKey(key string) (hash uint64, fits bool) {
	h, values := fnv1a(fnvStart, r.name)*fnvPrime, 0
	for v := range r.key.Parts([]byte(key)) {
		if values > 0 {
			h = fnv1a(h, keySeparator)
		}
		if h = fnv1a(h, v); len(v) > maxReportValue {
			return 0, false
		}
		values++
	}
	return mix(h), values == r.fields
}

// ship sends what was written for a node under a rule.
func (h *hot) ship(n *node, rule int) {
	out := &n.reports[rule]
	if out.n == 0 {
		return
	}
	q := newRequest(parseInt, "")
	events := out.events
	h.stats.begin(events)
	n.underWay.Add(1)
	q.then = func(err error) {
		n.underWay.Add(-1)
		h.stats.end(events, err)
	}
	err := error(errNotSent)
	if p := n.hot.live.Load(); p != nil {
		h.command = resp.AppendArray(h.command[:0], out.n+2)
		h.command = resp.AppendBulk(resp.AppendBulk(h.command, "HOT.REPORT"), h.rules[rule].name)
		h.command = append(h.command, out.args...)
		err = p.enqueue(q, nil, h.command)
	}
	if err != nil {
		q.end(answer{}, err)
	}
	out.args, out.n, out.events = out.args[:0], 0, 0
}

// tellCaches sends to a node the statistics of the caches of each rule since the last time.
func (h *hot) tellCaches() {
	for i := range h.rules {
		rule, told := h.rules[i].name, &h.caches[i]
		s := h.under(rule).Stats().Cache
		now := [4]uint64{s.Hits, s.Misses, s.Loads, s.Stale}
		if now == *told {
			continue
		}
		args := []string{"HOT.CACHE", rule}
		for j, n := range now {
			args = append(args, strconv.FormatUint(n-told[j], 10))
		}
		if h.tellOne(hashOf(rule, ""), args) {
			*told = now
		}
	}
}

// tellOne sends a command to the first node that is up. It reports whether it was sent; if the
// answer is lost, it is not sent again.
func (h *hot) tellOne(key uint64, args []string) bool {
	nodes := h.f.members.now()
	for n, s := choose(nodes, key, math.MaxUint64); n != nil; n, s = choose(nodes, key, s) {
		if p := n.hot.live.Load(); p != nil && p.tell(args...) == nil {
			return true
		}
	}
	return false
}
