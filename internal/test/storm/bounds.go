//go:build linux

package storm

import (
	"cmp"
	"fmt"
	"slices"
	"time"
)

// rounding is by how much a time in a store or of a client may be off.
const rounding = 2 * time.Millisecond

// judgeAll checks all invariants for the recorded calls.
func (r *run) judgeAll() {
	h := r.history
	slices.SortStableFunc(h.calls, func(a, b Call) int { return cmp.Compare(a.Start, b.Start) })
	for i := range r.Config.Limits {
		r.neverOver(&r.Config.Limits[i])
	}
	r.noneHangs()
	r.bansHold()
	r.readyIsTrue()
	r.diskIsTrue()
}

// neverOver judges for each key of a limit that no window has more than the stated bound. Calls that were
// not answered are taken for refused, so what it finds is never an effect of an error.
func (r *run) neverOver(l *Limit) {
	keys, back := make(map[string][]*Call), make(map[string][]*Call)
	for i := range r.history.calls {
		c := &r.history.calls[i]
		switch key, ok := l.Matches(c); {
		case !ok:
		case c.Verb == verbRefund || c.Verb == verbRelease:
			back[key] = append(back[key], c)
		case c.Answered && c.Allowed && (c.Verb == verbTake || c.Verb == verbCheck):
			keys[key] = append(keys[key], c)
		}
	}
	for key, calls := range keys {
		if !r.windows(l, key, calls, back[key]) {
			return // one is enough for a report
		}
	}
}

// windows judges the windows that begin with a call. A window has the events that can only have
// happened in it.
func (r *run) windows(l *Limit, key string, calls, back []*Call) bool {
	span := l.Versions[0].Span
	for _, v := range l.Versions {
		span = min(span, v.Span)
	}
	slices.SortFunc(calls, func(a, b *Call) int { return cmp.Compare(a.From, b.From) })
	for i, first := range calls {
		n, to := uint64(0), first.From+span-rounding
		for _, c := range calls[i:] {
			if c.From > to {
				break
			}
			if c.To <= to {
				n += c.Cost
			}
		}
		if n <= l.least() {
			continue
		}
		from, until := times(calls[i:], to)
		bound, why, stated := r.bound(l, from, until)
		for _, c := range back {
			if c.Start <= until && c.End >= from {
				bound += c.Cost
				if r.Config.Store && l.OnFailure == "local" && r.mayFallBack(c.Server, from, until) {
					bound += c.Cost // a server records what it has given back in the store in its own memory
				}
			}
		}
		if stated && n > bound {
			r.fail("never over", fmt.Sprintf("%s %s: %d allowed in %v from %s; at most %d: %s", l.Name, key, n, span, millis(first.From), bound, why),
				func(c *Call) bool { k, ok := l.Matches(c); return ok && k == key })
			return false
		}
	}
	return true
}

// times returns when the first of the calls was sent and when the last of those until to was answered.
func times(calls []*Call, to time.Duration) (from, until time.Duration) {
	from = calls[0].Start
	for _, c := range calls {
		if c.To <= to {
			from, until = min(from, c.Start), max(until, c.End)
		}
	}
	return from, until
}

// bound returns how much a limit allows at most in a window with events from one time to another, by the documents, and
// why. stated is false where they state no bound.
func (r *run) bound(l *Limit, from, until time.Duration) (bound uint64, why string, stated bool) {
	h, c := r.history, r.Config
	versions := h.versions(from, until)
	most, stated := l.over(versions, c.Servers)
	bound, why = most, fmt.Sprintf("the versions %v of the limit allow %d", versions, most)
	add := func(n uint64, of string) {
		if n > 0 {
			bound += n
			why += fmt.Sprintf(", %s %d", of, n)
		}
	}
	if !c.Store {
		lost := len(h.overlapping(0, from, until, killed))
		if !c.Data {
			lost += len(h.overlapping(0, from, until, ended))
		}
		if len(h.overlapping(0, from, until, fullDisk)) > 0 {
			lost += len(h.overlapping(0, from, until, ended))
		}
		add(uint64(lost)*most, fmt.Sprintf("%d restart(s) without what was counted", lost))
		// A restart keeps no more than the limit then in force holds.
		above := l.most(versions, Version.Most) - l.least()
		add(uint64(len(h.overlapping(0, from, until, ended)))*above, "counts above a lowered limit at a restart")
		return bound, why, stated
	}
	add(uint64(len(h.overlapping(everyServer, from, until, restored)))*most, "a store that begins empty")
	if c.Batched {
		n := l.most(versions, func(v Version) uint64 { return max(v.N, v.Burst) })
		lives := c.Servers + len(h.overlapping(everyServer, from, until, killed, ended))
		add(uint64(lives)*(n/8), "granted to servers")
	}
	share := l.most(versions, func(v Version) uint64 { return v.share(uint64(c.Servers)).Most() })
	for _, s := range r.servers {
		if l.OnFailure != "local" || !r.mayFallBack(s.index, from, until) {
			continue
		}
		lives := 1 + len(h.overlapping(s.index, from, until, killed, ended))
		add(uint64(lives)*share, fmt.Sprintf("server %d by itself, which was started %d time(s)", s.index, lives))
	}
	return bound, why, stated
}

// most returns the largest value for one of some versions.
func (l *Limit) most(versions []int, of func(Version) uint64) (n uint64) {
	for _, v := range versions {
		n = max(n, of(l.Versions[v]))
	}
	return n
}

// least returns the lowest bound that a version can have.
func (l *Limit) least() uint64 {
	n := l.Versions[0].Most()
	for _, v := range l.Versions {
		n = min(n, v.Most())
	}
	return n
}

// mayFallBack reports whether a server may have decided by itself between two times.
func (r *run) mayFallBack(server int, from, until time.Duration) bool {
	h := r.history
	from -= r.storeTimeout() + time.Second // counts from then are still in its memory
	return r.Config.StoreTimeout == 0 || h.fallbacks[server] || len(h.overlapping(server, from, until, away, restored)) > 0
}

func (r *run) storeTimeout() time.Duration { return max(r.Config.StoreTimeout, 20*time.Millisecond) }

// noneHangs judges that each call was answered within its deadline, the time not counted during which
// the process was stopped.
func (r *run) noneHangs() {
	for i := range r.history.calls {
		c := &r.history.calls[i]
		took := c.End - c.Start
		for _, m := range r.history.overlapping(c.Server, c.Start, c.End, stopped, killed, ended) {
			took -= min(m.To, c.End) - max(m.From, c.Start)
		}
		if took >= hangs {
			r.fail("answers", fmt.Sprintf("no answer within %v: %v", took, c), func(o *Call) bool {
				return o.Verb == c.Verb && o.Rule == c.Rule && o.Key == c.Key && o.Client == c.Client
			})
			return
		}
	}
}

// readyIsTrue judges that a server that has not reached its store yet is not ready.
func (r *run) readyIsTrue() {
	if !r.Config.Away {
		return
	}
	for i := range r.history.calls {
		c := &r.history.calls[i]
		if c.Verb != "/readyz" || !c.Allowed {
			continue
		}
		for _, m := range r.history.overlapping(c.Server, c.Start, c.End, away) {
			if m.From <= c.Start && (m.To == 0 || c.End < m.To) {
				r.fail("ready", fmt.Sprintf("ready, and has never reached its store: %v", c), nil)
				return
			}
		}
	}
}
