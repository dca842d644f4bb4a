package ratelimit

import (
	"bytes"
	"cmp"
	"fmt"
	"hash/maphash"
	"math/rand/v2"
	"os"
	"slices"
	"testing"
	"time"
)

// longTests reports whether the tests that have a long form are to run it:
//
//	LATELY_LONG=1 go test -run BanTable -timeout 1h
func longTests() bool { return os.Getenv("LATELY_LONG") != "" }

// banRandom returns a generator whose seed is printed when the test fails.
func banRandom(t testing.TB) *rand.Rand {
	seed := rand.Uint64()
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("seed %d", seed)
		}
	})
	return rand.New(rand.NewPCG(seed, 0))
}

// A banModel is what a banTable does, in a map and in plain words.
type banModel struct {
	bans    map[banID]*modelBan
	most    [2]int
	refused uint64
}

type banID struct {
	rule uint32
	key  string
}

type modelBan struct {
	heldBan
	memory time.Duration
	room   int
}

func (m *banModel) in(room int) (n int) {
	for _, b := range m.bans {
		if b.room == room {
			n++
		}
	}
	return n
}

// open returns the ban of id, new if need be, or nil if there is no room.
func (m *banModel) open(id banID, last int, now int64) *modelBan {
	if b := m.bans[id]; b != nil {
		return b
	}
	room := 0
	for m.in(room) == m.most[room] {
		var first banID
		for id, b := range m.bans {
			if b.room == room && b.until <= now && (first.key == "" || b.until < m.bans[first].until) {
				first = id
			}
		}
		if first.key != "" {
			delete(m.bans, first)
		} else if room++; room > last {
			return nil
		}
	}
	b := &modelBan{heldBan: heldBan{rule: id.rule, key: []byte(id.key), until: now}, room: room}
	m.bans[id] = b
	return b
}

func (b *modelBan) earlier(now int64) uint64 {
	if b.until < now-int64(b.memory) {
		return 0
	}
	return b.count
}

func (m *banModel) start(id banID, ban *Ban, now int64, seed uint64) (int64, bool) {
	b := m.open(id, 0, now)
	if b == nil {
		m.refused++
		return 0, false
	}
	earlier := b.earlier(now)
	until := now + int64(ban.jittered(earlier, seed, b.key))
	b.count, b.memory = earlier+1, ban.remember()
	if now < b.until && (until < b.until || until == b.until && b.source != sourceRule) {
		return b.until, true
	}
	what := ban.Of.String()
	if ban.After == 1 {
		what = what[:len(what)-1]
	}
	b.reason = fmt.Sprintf("more than %d %s in %s", ban.After, what, shortDuration(ban.Span))
	b.since, b.until, b.source = now, until, sourceRule
	return until, true
}

func (m *banModel) extend(id banID, ban *Ban, now int64, seed uint64) (int64, bool) {
	b := m.bans[id]
	if b == nil || now >= b.until {
		return 0, false
	}
	if ban.Extend && b.source == sourceRule {
		b.until = max(b.until, now+int64(ban.jittered(max(b.count, 1)-1, seed, b.key)))
	}
	return b.until, true
}

func (m *banModel) add(h heldBan, memory time.Duration, now int64) banChange {
	last := handRoom
	if h.source == sourceRule {
		last = 0
	}
	if h.until <= now {
		return banOver
	}
	b := m.open(banID{h.rule, string(h.key)}, last, now)
	if b == nil {
		return banNoRoom
	}
	b.count, b.memory = max(b.earlier(now), h.count), memory
	if now < b.until && (h.until < b.until || h.until == b.until && (h.source == sourceRule || b.source != sourceRule)) {
		return banKept
	}
	b.since, b.until, b.reason, b.source = h.since, h.until, h.reason, h.source
	return banAdded
}

func (m *banModel) held(now int64) []heldBan {
	var held []heldBan
	for _, b := range m.bans {
		if now < b.until {
			held = append(held, b.heldBan)
		}
	}
	slices.SortFunc(held, func(a, b heldBan) int {
		return cmp.Or(cmp.Compare(a.until, b.until), cmp.Compare(a.rule, b.rule), bytes.Compare(a.key, b.key))
	})
	return held
}

// randomKeys returns keys of all lengths, many that begin alike.
func randomKeys(rnd *rand.Rand, n int) []string {
	keys := make([]string, n)
	for i := range keys {
		b := make([]byte, 1+rnd.IntN(40))
		if rnd.IntN(20) == 0 {
			b = make([]byte, 1+rnd.IntN(maxBanKey))
		}
		if rnd.IntN(3) > 0 {
			b[len(b)-1] = byte(i)
			b[len(b)/2] = byte(i >> 8)
		}
		keys[i] = string(b)
	}
	return keys
}

func randomBan(rnd *rand.Rand) *Ban {
	span := func(most int) time.Duration { return time.Duration(1+rnd.IntN(most)) * time.Millisecond }
	b := &Ban{After: uint64(rnd.IntN(3)), Of: Cause(rnd.IntN(2)), Span: span(1e6), For: span(300), Remember: span(500)}
	switch rnd.IntN(3) {
	case 0:
		b.Factor = 1 + 3*rnd.Float64()
	case 1:
		b.For, b.Steps = 0, []time.Duration{span(100), span(300), span(900)}
	}
	if rnd.IntN(2) == 0 {
		b.Jitter = rnd.Float64()
	}
	b.Extend = rnd.IntN(2) == 0
	return b
}

// TestBanTableAgainstModel does random things to a table and a model of it. In
// half of the rounds the table is nearly always full; then bans are remembered
// for ever, since a model cannot know when the hand comes to one.
func TestBanTableAgainstModel(t *testing.T) {
	rnd := banRandom(t)
	rounds := 100
	switch {
	case longTests():
		rounds = 30_000
	case underRace:
		rounds = 10
	}
	seen := map[string]int{}
	for round := range rounds {
		full := round%2 == 0
		c := banTableConfig{most: 2000}
		if full {
			c = banTableConfig{most: 2 + rnd.IntN(60)}
			c.reserve = 1 + rnd.IntN(c.most)
		}
		modelBanTable(t, rnd, c, full, seen)
	}
	for _, what := range []string{
		"started", "no room to start", "extended", "extended nothing", "added", "kept", "over", "no room to add", "unbanned", "unbanned nothing", "expired",
	} {
		if seen[what] == 0 && !underRace {
			t.Errorf("it never happened: %s", what)
		}
	}
}

func modelBanTable(t *testing.T, rnd *rand.Rand, c banTableConfig, full bool, seen map[string]int) {
	table := newBanTable(c)
	model := &banModel{bans: map[banID]*modelBan{}, most: [2]int{int(table.rooms[0].most), int(table.rooms[1].most)}}
	seed := maphash.MakeSeed()
	mask := []uint64{^uint64(0), ^uint64(0), 0, 7, 0xf000_000f, 1 << 40}[rnd.IntN(6)] // some of them hash badly
	hash := func(key string) uint64 { return maphash.String(seed, key) & mask }
	keys := randomKeys(rnd, 1+rnd.IntN(120))
	rules := []uint32{0, 1, 7, 8, 1 << 20}
	bans := map[uint32]*Ban{}
	for _, r := range rules {
		bans[r] = randomBan(rnd)
		if full {
			bans[r].Remember = MaxSpan
		}
	}
	now := rnd.Int64N(1e18) - 5e17
	if now%1e6 == 0 {
		now++
	}
	note := func(ok bool, yes, no string) {
		if !ok {
			yes = no
		}
		seen[yes]++
	}
	for step := range 400 {
		now += rnd.Int64N(4e6)
		id := banID{rules[rnd.IntN(len(rules))], keys[rnd.IntN(len(keys))]}
		key, h, ban := []byte(id.key), hash(id.key), bans[id.rule]
		jitter := uint64(rnd.IntN(2))
		op := rnd.IntN(100)
		switch {
		case op < 45:
			until, ok := table.start(id.rule, h, key, ban, now, jitter)
			wantUntil, want := model.start(id, ban, now, jitter)
			if until != wantUntil || ok != want {
				t.Fatalf("step %d: start: %d %v, want %d %v", step, until, ok, wantUntil, want)
			}
			note(ok, "started", "no room to start")
		case op < 55:
			until, ok := table.extend(id.rule, h, key, ban, now, jitter)
			wantUntil, want := model.extend(id, ban, now, jitter)
			if until != wantUntil || ok != want {
				t.Fatalf("step %d: extend: %d %v, want %d %v", step, until, ok, wantUntil, want)
			}
			note(ok, "extended", "extended nothing")
		case op < 80:
			b := heldBan{rule: id.rule, key: key, since: now - rnd.Int64N(1e9), until: now + rnd.Int64N(1e9) - 1e8}
			b.count = uint64(rnd.IntN(5))
			b.source = []string{sourceRule, sourceManual, "manual by a", string(make([]byte, maxSource))}[rnd.IntN(4)]
			b.reason = []string{"", "attack", "more than 1 hit in 5m", "more than 20 refusals in 1h0m1s", string(make([]byte, maxReason))}[rnd.IntN(5)]
			if rnd.IntN(10) == 0 && model.bans[id] != nil {
				b.until = model.bans[id].until
			}
			got, want := table.add(h, &b, ban.remember(), now), model.add(b, ban.remember(), now)
			if got != want {
				t.Fatalf("step %d: add: %d, want %d", step, got, want)
			}
			seen[[]string{"added", "kept", "over", "no room to add"}[got]]++
		case op < 90:
			got := table.remove(id.rule, h, key, now)
			want := model.bans[id] != nil && now < model.bans[id].until
			delete(model.bans, id)
			if got != want {
				t.Fatalf("step %d: unban: %v, want %v", step, got, want)
			}
			note(got, "unbanned", "unbanned nothing")
		case op < 92 && !full:
			seen["expired"] += table.expire(now)
			for id, b := range model.bans {
				if b.until < now-int64(b.memory) {
					delete(model.bans, id)
				}
			}
			if n := table.counts(now).known; n != len(model.bans) {
				t.Fatalf("step %d: %d bans are known, want %d", step, n, len(model.bans))
			}
		case op == 99:
			gone := rules[rnd.IntN(len(rules))]
			table.keepRules(func(rule uint32) bool { return rule != gone })
			for id := range model.bans {
				if id.rule == gone {
					delete(model.bans, id)
				}
			}
		}
		for range 10 {
			checkHolds(t, table, model, banID{rules[rnd.IntN(len(rules))], keys[rnd.IntN(len(keys))]}, hash, now)
		}
		if step%20 == 0 {
			compareBans(t, table, model, now)
		}
	}
}

func checkHolds(t *testing.T, table *banTable, model *banModel, id banID, hash func(string) uint64, now int64) {
	t.Helper()
	until, ok := table.holds(id.rule, hash(id.key), []byte(id.key), now)
	b := model.bans[id]
	want := b != nil && now < b.until
	if ok != want || ok && until != b.until {
		t.Fatalf("rule %d, key %q: holds %v until %d, want %v, %+v", id.rule, id.key, ok, until, want, b)
	}
}

// compareBans compares the lists of bans, and the counts.
func compareBans(t *testing.T, table *banTable, model *banModel, now int64) {
	t.Helper()
	checkBanTable(t, table)
	want, counts, i := model.held(now), table.counts(now), 0
	byRule := map[uint32]int{}
	for got := range table.each(now) {
		if i == len(want) || fmt.Sprintf("%+v", got) != fmt.Sprintf("%+v", want[i]) {
			t.Fatalf("ban %d of %d: %+v, want %+v", i, len(want), got, want[min(i, len(want)-1)])
		}
		byRule[got.rule]++
		i++
	}
	if i != len(want) {
		t.Fatalf("%d bans are listed, want %d", i, len(want))
	}
	if fmt.Sprint(counts.held) != fmt.Sprint(byRule) || counts.refused != model.refused {
		t.Fatalf("counts %+v, want %v held and %d refused", counts, byRule, model.refused)
	}
}
