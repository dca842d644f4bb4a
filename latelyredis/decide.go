package latelyredis

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"time"
	"unsafe"

	"github.com/lately-go/lately/internal/store"
	"github.com/lately-go/lately/ratelimit"
)

const (
	// maxKey is the longest key, as in memory.
	maxKey = 1<<20 - 1

	// maxCost is the largest count, 2^53-1: more is charged as this. It is above all
	// limits, and a count that has reached it gives nothing back.
	maxCost = 1<<53 - 1

	// never is a waiting time that has no end, as scripts have it.
	never = 1 << 55
)

// Flags of a decision.
const (
	askPeek     = 1
	askRefused  = 2 // a rule of another subject refuses
	askWithdraw = 4 // take back first what was charged before
	askBanned   = 8 // an enforced ban of another subject holds
	askMerge    = 16
	askWaits    = 32                 // answer begins or watches if a ban would begin, or a full limit count a refused event
	askAlso     = 64                 // a rule of another subject refuses, and bans have not counted the event
	askLook     = 128                // the rules count the answer, which the event does not have yet
	askAnswer   = askLook | askMerge // it is an answer
)

// Answers of a script that has changed nothing because of askWaits: begins if an enforced rule refuses, watches if only shadow rules do.
const (
	begins  = "begins"
	watches = "watches"
)

// errAnswer is the error of an answer that no script returns.
var errAnswer = errors.New("latelyredis: the server answered with something else than the script returns")

// Decide implements the store of a Limiter: it judges each request in one step for each
// subject, all of the batch in one round trip to each node.
//
// A request with several subjects (rules with different key fields) is judged for each
// separately. If one refuses, the charges of the others are taken back in a second
// round trip; they count until then, and stay if it fails. A ban that the request would
// begin takes a round trip of its own, unless a ban of another subject holds, and so
// does a full limit that counts refused events.
func (s *Store) Decide(ctx context.Context, batch []*request) {
	l := s.layout.Load()
	var groups []*group
	for _, r := range batch {
		r.Err = nil
		if r.Set != l.set {
			r.Err = store.ErrStale
			continue
		}
		if s.decideKnown(l, r) {
			continue
		}
		groups = s.split(groups, l, r)
	}
	s.decide(ctx, l, groups)
	s.decide(ctx, l, s.beginning(l, groups, begins))
	s.decide(ctx, l, s.beginning(l, groups, watches))
	s.decide(ctx, l, s.revised(l, groups))
	s.learn(ctx, l, groups)
	s.finish(l, groups)
}

// DecideKnown implements the store of a Limiter: it decides without a round trip about a
// key whose ban or refusal this node has recorded, or for which Redis has granted it
// units.
func (s *Store) DecideKnown(r *request) bool {
	l := s.layout.Load()
	return r.Set == l.set && s.decideKnown(l, r)
}

func (s *Store) decideKnown(l *layout, r *request) bool {
	return s.copied && !r.Answer && (s.refuseBanned(l, r, false) || s.refuseKnown(l, r) || s.batched && !s.closed.Load() && s.allowKnown(l, r))
}

// finish gives the requests of groups their answers.
func (s *Store) finish(l *layout, groups []*group) {
	asked := int64(0)
	for i, g := range groups {
		if i == 0 || groups[i-1].request != g.request {
			asked, g.request.Now = g.request.Now, 0
		}
		if g.finish(l); g.request.Err != nil {
			g.request.Now = asked // for who decides instead
		}
	}
	for _, g := range groups {
		if r := g.request; r.Err != nil && s.copied && !r.Answer && s.refuseBanned(l, r, true) {
			r.Err = nil // bans hold while Redis is away
		}
	}
	if s.copied {
		s.remember(l, groups)
	}
}

// A group is the subjects of a request that have the same key: what one script
// decides.
type group struct {
	call
	request *request
	members []int // their places in the request
	refused bool  // an enforced rule of the group refuses, or the group was not decided
	banned  bool  // an enforced ban held before
	waits   bool  // it was asked with askWaits
	begins  bool  // it was not counted yet: the answer is begins or watches
	also    bool  // it was asked with askAlso
	began   []int // the members whose ban began before the call was revised

	sent  int64  // when it was asked, by the clock of the node
	stamp uint64 // of the refusals of its key, then
}

// split appends the groups of r to groups.
func (s *Store) split(groups []*group, l *layout, r *request) []*group {
	first := len(groups)
subjects:
	for i := range r.Subjects {
		sub := &r.Subjects[i]
		if len(sub.Key) > maxKey {
			r.Err = ratelimit.ErrKeyTooLong
			return groups[:first]
		}
		rl := &l.rules[sub.Outcome.Rule]
		for _, g := range groups[first:] {
			head := &r.Subjects[g.members[0]]
			if head.Look == sub.Look && sameBytes(head.Key, sub.Key) && l.rules[head.Outcome.Rule].sameSubject(&rl.namer) {
				g.members = append(g.members, i)
				continue subjects
			}
		}
		groups = append(groups, &group{request: r, members: []int{i}})
	}
	several := len(groups)-first > 1
	for _, g := range groups[first:] {
		if s.copied {
			g.sent, g.stamp = s.mirror.now(), s.refusals.stamp(s.refusals.hash(r.Subjects[g.members[0]].Key)).Load()
		}
		flags := byte(0)
		if r.Refused {
			flags = askAlso
		}
		if several && !r.Peek && !r.Answer && slices.ContainsFunc(g.members, func(i int) bool { return l.rules[r.Subjects[i].Outcome.Rule].countsRefusals }) {
			flags |= askWaits
		}
		s.ask(g, l, flags)
	}
	return groups
}

// sameBytes is bytes.Equal, but faster for the same memory.
func sameBytes(a, b []byte) bool {
	return len(a) == len(b) && (unsafe.SliceData(a) == unsafe.SliceData(b) || bytes.Equal(a, b))
}

// ask makes the call of g.
func (s *Store) ask(g *group, l *layout, flags byte) {
	r := g.request
	if g.waits, g.also = flags&askWaits != 0, flags&askAlso != 0; r.Peek {
		flags |= askPeek
	}
	switch {
	case r.Answer:
		flags |= askAnswer
	case r.Subjects[g.members[0]].Look:
		flags |= askLook
	}
	rules, given := make([]int, len(g.members)), []uint64(nil)
	for k, i := range g.members {
		rules[k] = r.Subjects[i].Outcome.Rule
		if n := r.Subjects[i].N; n > 0 {
			if given == nil {
				given = make([]uint64, len(g.members))
			}
			given[k] = n
		}
	}
	script := l.scripts.decide
	if fast := l.scripts.fast[l.rules[rules[0]].fast]; fast != nil && len(rules) == 1 && flags == 0 {
		script = fast
	}
	cost := appendUint56(make([]byte, 0, uint56+1), int64(min(r.Cost, maxCost)))
	g.call = s.callAbout(l, script, string(append(cost, flags)), r.Subjects[g.members[0]].Key, given, rules...)
}

// callAbout returns the call of a script about the records of a key under rules, which
// have the same key fields. Its first argument is head. given is N that the event brings, of each rule, or nil.
func (s *Store) callAbout(l *layout, script *script, head string, key []byte, given []uint64, rules ...int) call {
	c := call{command: command{script: script, keys: make([]string, len(rules)), args: make([]string, 1+len(rules))}}
	c.args[0] = head
	subject := l.rules[rules[0]].subject(s.prefix, key)
	for k, i := range rules {
		c.keys[k] = subject + l.rules[i].after
		if len(l.rules[i].calendars) > 0 {
			c.calendars = true
		}
	}
	c.rules, c.given, c.key = rules, given, key
	c.tell(l, s.mirror.server()-early)
	return c
}

// tell sets the arguments of c that describe its rules, at about the time now.
func (c *call) tell(l *layout, now int64) {
	for k, i := range c.rules {
		n := uint64(0)
		if c.given != nil {
			n = c.given[k]
		}
		c.args[1+k] = l.rules[i].argument(now, n)
	}
}

// decide exchanges the calls of groups, and checks the answers.
func (s *Store) decide(ctx context.Context, l *layout, groups []*group) {
	if len(groups) == 0 {
		return
	}
	calls := make([]*call, len(groups))
	for i, g := range groups {
		calls[i] = &g.call
	}
	s.exchangeTogether(ctx, l, calls)
	for _, g := range groups {
		g.check(l)
	}
}

// check checks the length of the answer, and notes whether it refuses.
func (g *group) check(l *layout) {
	length := uint56 + len(g.members)*answerBytes
	g.refused, g.banned, g.begins = true, false, false
	if g.err != nil {
		return
	}
	if g.waits && (g.data == begins || g.data == watches) {
		g.refused, g.begins = false, true
		return
	}
	if len(g.data) < length {
		g.err = errAnswer
		return
	}
	g.refused = false
	for k, i := range g.members {
		rl := &l.rules[g.request.Subjects[i].Outcome.Rule]
		if !g.answer(k).tells(rl) {
			g.err, g.refused = errAnswer, true
			return
		}
		enforced, status := !rl.shadow, g.answer(k).status
		g.refused = g.refused || enforced && status&answerRefused != 0
		g.banned = g.banned || enforced && status&(answerBanned|answerStarted) == answerBanned
		if status&answerBanned != 0 {
			length += banBytes
		}
	}
	if len(g.data) != length || !bansIntact(g.data[uint56+len(g.members)*answerBytes:], readUint56(g.data)) {
		g.err, g.refused = errAnswer, true
	}
}

// bansIntact is banIntact for all bans in an answer.
func bansIntact(bans string, now int64) bool {
	for ; len(bans) > 0; bans = bans[banBytes:] {
		if !banIntact(bans, now) {
			return false
		}
	}
	return true
}

// An answer is what a script returns of a subject. Times are in microseconds.
type answer struct {
	status              uint16
	limit               int
	remaining           uint64
	retry, reset, delay int64
	resets              uint16
}

const (
	answerRefused = 1
	answerCharged = 2 // for a settlement
	answerCounted = 4 // in the record, which a refused event is as well with CountRefused
	answerBanned  = 8
	answerStarted = 16
	answerSkipped = 32
	answerOfBan   = 128 // limit and remaining are those of the ban
	answerStruck  = 256 // a ban has counted it
	answerBytes   = 2 + 1 + 4*uint56 + 2
)

// answer returns the answer to c about its k-th rule.
func (c *call) answer(k int) answer {
	b := c.data[uint56+k*answerBytes:]
	return answer{
		status:    uint16(b[0])<<8 | uint16(b[1]),
		limit:     int(b[2]),
		remaining: uint64(readUint56(b[3:])),
		retry:     readUint56(b[3+uint56:]),
		reset:     readUint56(b[3+2*uint56:]),
		delay:     readUint56(b[3+3*uint56:]),
		resets:    uint16(b[answerBytes-2])<<8 | uint16(b[answerBytes-1]),
	}
}

// tells reports whether the limit in a exists in rl, or is that of its ban.
func (a answer) tells(rl *rule) bool {
	return a.status&answerSkipped != 0 || a.status&answerOfBan != 0 && rl.ban != nil || a.limit < len(rl.most)
}

// finish fills in the outcomes of g's subjects, and the time of its request.
func (g *group) finish(l *layout) {
	r := g.request
	if g.err != nil {
		r.Err = g.err
		return
	}
	now := readUint56(g.data)
	r.Now = max(r.Now, now*1000)
	for k, i := range g.members {
		a, s := g.answer(k), &r.Subjects[i]
		s.Mark = mark(now, a.resets)
		s.Outcome = outcome{
			Rule:       s.Outcome.Rule,
			Set:        s.Outcome.Set,
			Refused:    a.status&answerRefused != 0,
			Started:    a.status&answerStarted != 0 || slices.Contains(g.began, k),
			Skipped:    a.status&answerSkipped != 0,
			Charged:    a.status&answerCharged != 0,
			LimitIndex: a.limit,
			Remaining:  a.remaining,
			RetryAfter: duration(a.retry),
			ResetAfter: duration(a.reset),
			Delay:      duration(a.delay),
		}
		g.finishBan(l, k)
	}
}

// finishBan fills in the limit of an outcome, which may be that of a ban, and its ban.
func (g *group) finishBan(l *layout, k int) {
	a, o := g.answer(k), &g.request.Subjects[g.members[k]].Outcome
	rl := &l.rules[o.Rule]
	switch {
	case o.Skipped:
	case a.status&answerOfBan != 0 && rl.ban != nil:
		o.Limit = rl.ban.After
	default:
		o.Limit = rl.mostFor(a.limit, g.request.Subjects[g.members[k]].N)
	}
	if a.status&answerBanned != 0 {
		b := g.banOf(l, k)
		o.Banned, o.BannedUntil, o.LimitIndex = true, time.Unix(0, b.Until), 0
	}
}

func duration(micros int64) time.Duration {
	if micros >= never {
		return ratelimit.Never
	}
	return time.Duration(micros) * time.Microsecond
}

// markResets is how many bits of a mark are the number of resets; the others are the time
// of the charge.
const markResets = 12

func mark(now int64, resets uint16) uint64 { return uint64(now)<<markResets | uint64(resets) }

func unmark(m uint64) (now int64, resets uint16) {
	return int64(m >> markResets), uint16(m & (1<<markResets - 1))
}
