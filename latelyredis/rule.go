package latelyredis

import (
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"math"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/lately-go/lately/internal/ban"
	"github.com/lately-go/lately/internal/counting/keytable"
	"github.com/lately-go/lately/internal/limit"
	"github.com/lately-go/lately/ratelimit"
)

// maxLimits is the most limits of a rule: with what a ban counts, a byte of its record.
const maxLimits = 254

// A layout is a rule set in the form of arguments of scripts.
type layout struct {
	set     *ratelimit.Set
	rules   []rule
	banIDs  []uint32 // of each rule, in the copy of the list of bans
	scripts scripts
	rounds  rounds
}

// newLayout returns the layout of a set. Its error names the rule and what cannot be kept
// in Redis.
func newLayout(clock string, set *ratelimit.Set) (*layout, error) {
	l := &layout{set: set, scripts: newScripts(clock, set)}
	for i, of := range set.Rules() {
		r, err := newRule(of)
		if err != nil {
			return nil, err
		}
		r.number = i
		l.rules = append(l.rules, r)
	}
	return l, nil
}

// byID returns the rule with that number in the copy of the list of bans, or nil.
func (l *layout) byID(id uint32) *rule {
	for i := range l.rules {
		if l.rules[i].banID == id {
			return &l.rules[i]
		}
	}
	return nil
}

// named returns the rule of that name.
func (l *layout) named(name string) (*rule, error) {
	_, err := l.set.Named(name)
	if err != nil {
		return nil, err
	}
	i := slices.IndexFunc(l.rules, func(rl rule) bool { return rl.name == name })
	return &l.rules[i], nil
}

// A rule is a rule in the form of an argument of scripts: flags 1 | keep 7 | number of limits 1, and of
// each limit its algorithm 1 | N 4 | span 7 | burst 4, of a calendar also the bounds of two
// periods, 7 each. N is the most that a record holds, and the burst what the event may use; but of a bucket whose N is
// data, N is that of the event, and the largest follows, 4. Then, of a ban, the log of what it counts as a limit, and flags 1 |
// remembered 7 | first length 7 | factor 8 | longest 7 | jitter 8 | random part 4 | number of
// steps 1 | 7 each. Then the head of its records. Numbers are big-endian, times in microseconds.
type rule struct {
	namer
	most      []uint64 // what each limit lets be used
	told      []byte   // with the bounds of periods left open
	head      []byte   // how its records begin: what describes its limits, and what the ban counts
	fixed     string   // told, if nothing is left open
	calendars []calendar
	varying   varying
	fast      string // the family of its fast script, or ""

	name   string
	number int    // in the set
	listed string // what stands for it in the list of bans
	banID  uint32 // and in the copy of it
	ban    *ban.Policy
	memory time.Duration // how long a ban is remembered after its end
	part   int           // where the random part of a ban's length is in told, or 0

	shadow         bool
	countsRefusals bool
	refused        *keytable.Table // see refusal.go; nil if refusals have to reach Redis
	grants         *keytable.Table // see grant.go; nil if Redis decides
}

// varying is the limit of a rule with AtMost.
type varying struct {
	index  int    // of the limit, or -1
	at     int    // where it is, in told
	burst  uint64 // or 0
	bucket bool
}

// A calendar is a limit whose periods depend on a time zone, which a script cannot know.
type calendar struct {
	at     int // where the bounds are, in told
	period limit.Period
	zone   *time.Location
}

// recordForm is the form of records, 1 of 17, see record.lua.
const recordForm = 17

const (
	flagShadow       = 1
	flagCountRefused = 2
)

// keepable returns nil, or a [RuleError] that says why r cannot be kept in Redis.
func keepable(r *ratelimit.Rule) error {
	switch {
	case r.Adapt != nil:
		return &RuleError{r.Name, errors.New("adapt: limits that follow the traffic are not kept in Redis yet: remove adapt, or use the memory store")}
	case r.Ban != nil && r.Ban.Of == ratelimit.Distinct:
		return &RuleError{r.Name, fmt.Errorf("ban: after %d distinct values of %s: values are not kept in Redis yet: count hits or refusals, or use the memory store", r.Ban.After, r.Ban.Field)}
	case len(r.Limits) > maxLimits:
		return &RuleError{r.Name, fmt.Errorf("%d limits: must be at most %d", len(r.Limits), maxLimits)}
	}
	return nil
}

func newRule(r *ratelimit.Rule) (rule, error) {
	if err := keepable(r); err != nil {
		return rule{}, err
	}
	flags := byte(0)
	if r.Shadow {
		flags |= flagShadow
	}
	if r.CountRefused {
		flags |= flagCountRefused
	}
	rl := rule{namer: newNamer(r.Key, r.Name), fast: fastFamily(r), memory: ban.DefaultRemember, varying: varying{index: -1}, name: r.Name, listed: listedRule(r.Name, r.Key.Fields())}
	rl.told = appendUint56([]byte{flags}, keep(r))
	rl.told = append(rl.told, byte(len(r.Limits)))
	rl.head = []byte{recordForm, byte(len(r.Limits))}
	rl.shadow, rl.countsRefusals = r.Shadow, countsRefusals(r)
	for _, l := range r.Limits {
		rl.add(r, l)
	}
	if r.Ban != nil {
		rl.told[1+uint56]++
		rl.head[1]++
		rl.addBan(r.Ban)
	}
	rl.told = append(rl.told, rl.head...)
	rl.fixed = string(rl.told)
	return rl, nil
}

// add adds a limit.
func (rl *rule) add(r *ratelimit.Rule, l ratelimit.Limit) {
	most := l.N
	if l.N > 0 && l.Burst > 0 {
		most = l.Burst
	}
	rl.most = append(rl.most, most)
	if l.AtMost > 0 {
		rl.addVarying(r.Algorithm, l, most)
	} else {
		rl.tell(byte(r.Algorithm), l.N, l.Window(), most)
	}
	if r.Algorithm == ratelimit.Calendar {
		zone := cmp.Or(r.Zone, time.UTC)
		rl.calendars = append(rl.calendars, calendar{len(rl.told), cmp.Or(l.Per, limit.PeriodOf(l.Span)), zone})
		rl.told = append(rl.told, make([]byte, 3*uint56)...)
		rl.head = binary.BigEndian.AppendUint32(rl.head, zoneSum(zone))
	}
}

// zoneSum is what a record has of the zone of a calendar, a checksum: limits of two zones are two limits.
func zoneSum(zone *time.Location) uint32 {
	id := limit.ZoneOf(zone)
	return crc32.ChecksumIEEE(binary.BigEndian.AppendUint32([]byte(id.Name), uint32(id.January)))
}

// addVarying adds a limit with AtMost, which allows most without an N of the event.
func (rl *rule) addVarying(a ratelimit.Algorithm, l ratelimit.Limit, most uint64) {
	v := varying{index: len(rl.most) - 1, at: len(rl.told), burst: l.Burst, bucket: isVariable(a, l)}
	algorithm := byte(a)
	if v.bucket {
		const variable = 8 // see common.lua
		algorithm += variable - byte(ratelimit.GCRA)
	}
	rl.varying = v
	rl.tell(algorithm, l.AtMost, l.Window(), cmp.Or(l.Burst, l.AtMost))
	binary.BigEndian.PutUint32(rl.told[v.at+1+4+uint56:], uint32(most))
	if v.bucket {
		binary.BigEndian.PutUint32(rl.told[v.at+1:], uint32(l.N))
		rl.told = binary.BigEndian.AppendUint32(rl.told, uint32(l.AtMost))
	}
}

// mostFor returns what the i-th limit lets an event use that brings n, or 0.
func (rl *rule) mostFor(i int, n uint64) uint64 {
	if n > 0 && i == rl.varying.index {
		return cmp.Or(rl.varying.burst, n)
	}
	return rl.most[i]
}

// tell adds what a script is told of a limit, and what a record says of it, see readLimits in repair.lua.
func (rl *rule) tell(algorithm byte, n uint64, span time.Duration, most uint64) {
	b := binary.BigEndian.AppendUint32(append(rl.told, algorithm), uint32(n))
	rl.told = binary.BigEndian.AppendUint32(appendUint56(b, span.Microseconds()), uint32(most))

	const unit, burst = 1 << 4, 1 << 6
	in := uint64(span.Microseconds())
	for ; algorithm < 2*unit && in%1000 == 0; in /= 1000 {
		algorithm += unit
	}
	if most != n {
		algorithm += burst
	}
	rl.head = binary.AppendUvarint(binary.AppendUvarint(append(rl.head, algorithm), in), n)
	if most != n {
		rl.head = binary.AppendUvarint(rl.head, most)
	}
}

// addBan adds the log of what a ban counts, and how long bans last.
func (rl *rule) addBan(b *ratelimit.Ban) {
	const hits = 10 // see common.lua
	rl.tell(hits+byte(b.Of), b.After, b.Span, b.After)
	flags := byte(0)
	if b.Extend {
		flags = 1
	}
	p := (*ban.Policy)(b)
	rl.ban, rl.memory = p, p.Remembered()
	rl.told = appendUint56(append(rl.told, flags), rl.memory.Microseconds())
	rl.told = appendUint56(rl.told, b.For.Microseconds())
	rl.told = binary.BigEndian.AppendUint64(rl.told, math.Float64bits(b.Factor))
	rl.told = appendUint56(rl.told, p.Most().Microseconds())
	rl.told = binary.BigEndian.AppendUint64(rl.told, math.Float64bits(b.Jitter))
	if b.Jitter > 0 {
		rl.part = len(rl.told)
	}
	rl.told = append(rl.told, 0, 0, 0, 0, byte(len(b.Steps)))
	for _, d := range b.Steps {
		rl.told = appendUint56(rl.told, d.Microseconds())
	}
}

// keep returns how long at most a charge counts, and longer: how long a reset has to be
// remembered. A record with a later time is damaged.
func keep(r *ratelimit.Rule) int64 {
	longest := time.Duration(0)
	if r.Ban != nil {
		longest = 2 * r.Ban.Span
	}
	for _, l := range r.Limits {
		longest = max(longest, 2*l.Window())
		if l.AtMost > 0 {
			l.Burst, l.N = 2*max(l.AtMost, l.Burst), 1 // a bucket that drains at its slowest
		}
		if l.N > 0 { // a bucket holds twice its burst, or its burst and N, at most
			drains := math.Ceil(float64(max(l.Burst, l.N)) / float64(l.N))
			longest = max(longest, 2*min(time.Duration(drains)*l.Window(), limit.MaxSpan))
		}
	}
	return longest.Microseconds()
}

// early is by how many microseconds the time is too early that the periods of a calendar are of: the
// next period is told as well, so either clock may be ahead of the other by half a second.
const early = 500_000

// argument returns the argument of scripts for rl at about the time now, in
// microseconds, for an event that brings n, or 0.
func (rl *rule) argument(now int64, n uint64) string {
	if len(rl.calendars) == 0 && rl.part == 0 && n == 0 {
		return rl.fixed
	}
	told := append([]byte(nil), rl.told...)
	if v := &rl.varying; n > 0 && v.index >= 0 {
		if v.bucket {
			binary.BigEndian.PutUint32(told[v.at+1:], uint32(n))
		}
		binary.BigEndian.PutUint32(told[v.at+1+4+uint56:], uint32(cmp.Or(v.burst, n)))
	}
	if rl.part > 0 {
		binary.BigEndian.PutUint32(told[rl.part:], rand.Uint32())
	}
	for _, c := range rl.calendars {
		first, over := c.period.Bounds(now*1000, c.zone)
		_, next := c.period.Bounds(over, c.zone)
		b := told[c.at:c.at]
		for _, t := range []int64{first, over, next} {
			b = appendUint56(b, t/1000)
		}
	}
	return string(told)
}

// uint56 is the number of bytes of a time in arguments and answers.
const uint56 = 7

func appendUint56(b []byte, n int64) []byte {
	return append(b, byte(n>>48), byte(n>>40), byte(n>>32), byte(n>>24), byte(n>>16), byte(n>>8), byte(n))
}
