package ban

import (
	"bytes"
	"cmp"
	"fmt"
	"hash/maphash"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/lately-go/lately/internal/counting/keytable"
	"github.com/lately-go/lately/internal/rule/invalid"
	"github.com/lately-go/lately/internal/test/randtest"
)

// longTests reports whether the tests that have a long form are to run it:
//
//	LATELY_LONG=1 go test -run BanTable -timeout 1h
func longTests() bool { return os.Getenv("LATELY_LONG") != "" }

// random returns a generator whose seed is printed when the test fails.
func random(t testing.TB) *rand.Rand {
	seed := randtest.Seed(t)
	return rand.New(rand.NewPCG(seed, 0))
}

// A banModel is what a Table does, in a map and in plain words.
type banModel struct {
	bans    map[banID]*modelBan
	most    map[bool]int // of the reserve, or not
	refused uint64

	searched map[bool]int64
}

type banID struct {
	rule uint32
	key  string
}

type modelBan struct {
	Ban
	reserve bool
}

func (m *banModel) in(reserve bool) (n int) {
	for _, b := range m.bans {
		if b.reserve == reserve {
			n++
		}
	}
	return n
}

// open returns the ban of id, new if need be, or nil if there is no place for one.
func (m *banModel) open(id banID, manual bool, now int64) *modelBan {
	if b := m.bans[id]; b != nil {
		return b
	}
	for _, reserve := range []bool{false, true} {
		if reserve && !manual || m.in(reserve) >= m.most[reserve] && !m.drops(reserve, now) {
			continue
		}
		b := &modelBan{Ban: Ban{Rule: id.rule, Key: []byte(id.key), Until: math.MinInt64}, reserve: reserve}
		m.bans[id] = b
		return b
	}
	return nil
}

// drops reports whether a ban is dropped: it has ended, and some milliseconds before there was none that had.
func (m *banModel) drops(reserve bool, now int64) bool {
	if last, ok := m.searched[reserve]; ok && now < last+int64(dropEvery) {
		return false
	}
	for _, b := range m.bans {
		if b.reserve == reserve && b.Until <= now {
			return true
		}
	}
	m.searched[reserve] = now
	return false
}

// drop drops what the table has dropped, which must have ended.
func (m *banModel) drop(t *testing.T, table *Table, now int64) {
	there := map[banID]bool{}
	for b := range table.Saved() {
		there[banID{b.Rule, string(b.Key)}] = true
	}
	for id, b := range m.bans {
		if there[id] {
			continue
		}
		if now < b.Until {
			t.Fatalf("a ban that holds was dropped: %+v", b)
		}
		delete(m.bans, id)
	}
}

func (b *modelBan) earlier(now int64) uint64 {
	if b.Until < now-int64(b.Memory) {
		return 0
	}
	return b.Count
}

func (m *banModel) start(id banID, ban *Policy, now int64, seed uint64) (int64, bool) {
	b := m.open(id, false, now)
	if b == nil {
		m.refused++
		return 0, false
	}
	earlier := b.earlier(now)
	until := now + int64(ban.jittered(earlier, seed, b.Key))
	b.Count, b.Memory = earlier+1, ban.Remembered()
	if now < b.Until && (until < b.Until || until == b.Until && b.Source != SourceRule) {
		return b.Until, true
	}
	what := ban.Of.String()
	if ban.After == 1 {
		what = what[:len(what)-1]
	}
	b.Reason = fmt.Sprintf("more than %d %s in %s", ban.After, what, invalid.Duration(ban.Span))
	b.Since, b.Until, b.Source = now, until, SourceRule
	return until, true
}

func (m *banModel) extend(id banID, ban *Policy, now int64, seed uint64) (int64, bool) {
	b := m.bans[id]
	if b == nil || now >= b.Until {
		return 0, false
	}
	if ban.Extend && b.Source == SourceRule {
		b.Until = max(b.Until, now+int64(ban.jittered(max(b.Count, 1)-1, seed, b.Key)))
	}
	return b.Until, true
}

func (m *banModel) add(h Ban, now int64) Result {
	b := m.open(banID{h.Rule, string(h.Key)}, !h.byRule(), now)
	if b == nil {
		return Full
	}
	b.Count, b.Memory = max(b.earlier(now), h.Count), h.Memory
	plain := func(b *Ban) bool { return b.Source == SourceManual && b.Reason == "" }
	completes := plain(&b.Ban) && !plain(&h)
	if h.Until < b.Until || h.Until == b.Until && (h.Source == SourceRule || b.Source != SourceRule && !completes) {
		return Kept
	}
	b.Since, b.Until, b.Reason, b.Source = h.Since, h.Until, h.Reason, h.Source
	return Added
}

func (m *banModel) held(now int64) []Ban {
	var held []Ban
	for _, b := range m.bans {
		if now < b.Until {
			held = append(held, b.Ban)
		}
	}
	slices.SortFunc(held, func(a, b Ban) int {
		return cmp.Or(cmp.Compare(a.Until, b.Until), cmp.Compare(a.Rule, b.Rule), bytes.Compare(a.Key, b.Key))
	})
	return held
}

// randomKey returns keys of all lengths, many with equal beginnings.
func randomKeys(rnd *rand.Rand, n int) []string {
	keys := make([]string, n)
	for i := range keys {
		b := make([]byte, 1+rnd.IntN(40))
		if rnd.IntN(20) == 0 {
			b = make([]byte, 1+rnd.IntN(MaxKey))
		}
		if rnd.IntN(3) > 0 {
			b[len(b)-1] = byte(i)
			b[len(b)/2] = byte(i >> 8)
		}
		keys[i] = string(b)
	}
	return keys
}

func randomPolicy(rnd *rand.Rand) *Policy {
	span := func(most int) time.Duration { return time.Duration(1+rnd.IntN(most)) * time.Millisecond }
	b := &Policy{After: uint64(rnd.IntN(3)), Of: Cause(rnd.IntN(2)), Span: span(1e6), For: span(300), Remember: span(500)}
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

// TestBanTableAgainstModel makes random calls on a table and a model of it. In half of the rounds the table is nearly
// always full; then bans are remembered forever, and the model copies from the table which of the ended ones are dropped.
func TestBanTableAgainstModel(t *testing.T) {
	rnd := random(t)
	rounds := 100
	switch {
	case longTests():
		rounds = 30_000
	}
	seen := map[string]int{}
	for round := range rounds {
		full := round%2 == 0
		table := NewTable(Config{Most: 2000})
		if full {
			most := 2 + rnd.IntN(60)
			table = newTable(Config{}, most, 1+rnd.IntN(most))
		}
		modelTable(t, rnd, table, full, seen)
	}
	for _, what := range []string{
		"started", "no memory to start", "extended", "extended nothing", "added", "kept", "over", "no memory to add", "unbanned", "unbanned nothing", "expired",
	} {
		if seen[what] == 0 {
			t.Errorf("it never happened: %s", what)
		}
	}
}

func modelTable(t *testing.T, rnd *rand.Rand, table *Table, full bool, seen map[string]int) {
	model := &banModel{searched: map[bool]int64{}, bans: map[banID]*modelBan{}, most: map[bool]int{false: int(table.shared.most), true: int(table.reserve.most)}}
	seed := maphash.MakeSeed()
	mask := []uint64{^uint64(0), ^uint64(0), 0, 7, 0xf000_000f, 1 << 40}[rnd.IntN(6)] // some of them hash badly
	hash := func(key string) uint64 { return maphash.String(seed, key) & mask }
	keys := randomKeys(rnd, 1+rnd.IntN(120))
	rules := []uint32{0, 1, 7, 8, 1 << 20}
	bans := map[uint32]*Policy{}
	for _, r := range rules {
		bans[r] = randomPolicy(rnd)
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
			until, ok := table.Start(id.rule, h, key, ban, now, jitter)
			wantUntil, want := model.start(id, ban, now, jitter)
			if until != wantUntil || ok != want {
				t.Fatalf("step %d: start: %d %v, want %d %v", step, until, ok, wantUntil, want)
			}
			note(ok, "started", "no memory to start")
		case op < 55:
			until, ok := table.Extend(id.rule, h, key, ban, now, jitter)
			wantUntil, want := model.extend(id, ban, now, jitter)
			if until != wantUntil || ok != want {
				t.Fatalf("step %d: extend: %d %v, want %d %v", step, until, ok, wantUntil, want)
			}
			note(ok, "extended", "extended nothing")
		case op < 80:
			b := Ban{Rule: id.rule, Key: key, Since: now - rnd.Int64N(1e9), Until: now + rnd.Int64N(1e9) - 1e8}
			b.Count = uint64(rnd.IntN(5))
			b.Source = []string{SourceRule, SourceManual, "manual by a", string(make([]byte, MaxSource))}[rnd.IntN(4)]
			b.Reason = []string{"", "attack", "more than 1 hit in 5m", "more than 20 refusals in 1h0m1s", string(make([]byte, MaxReason))}[rnd.IntN(5)]
			if rnd.IntN(10) == 0 && model.bans[id] != nil {
				b.Until = model.bans[id].Until
			}
			b.Memory = ban.Remembered()
			if m := model.bans[id]; m != nil && b.Until <= m.Until && m.Until < now-int64(m.Memory) {
				continue // the table may have removed m
			}
			got, want := table.Add(h, &b, now), model.add(b, now)
			if got != want {
				t.Fatalf("step %d: add: %d, want %d", step, got, want)
			}
			if b.Until <= now {
				seen["over"]++
			} else {
				seen[[]string{"added", "kept", "no memory to add"}[got]]++
			}
		case op < 90:
			got := table.Remove(id.rule, h, key, now)
			want := model.bans[id] != nil && now < model.bans[id].Until
			delete(model.bans, id)
			if got != want {
				t.Fatalf("step %d: unban: %v, want %v", step, got, want)
			}
			note(got, "unbanned", "unbanned nothing")
		case op < 92 && !full:
			seen["expired"] += expireAll(table, now)
			for id, b := range model.bans {
				if b.Until < now-int64(b.Memory) {
					delete(model.bans, id)
				}
			}
			if n := table.Counts(now).Len; n != len(model.bans) {
				t.Fatalf("step %d: %d bans are stored, want %d", step, n, len(model.bans))
			}
		case op == 99:
			gone := rules[rnd.IntN(len(rules))]
			table.KeepRules(func(rule uint32) bool { return rule != gone })
			for id := range model.bans {
				if id.rule == gone {
					delete(model.bans, id)
				}
			}
		}
		if full {
			model.drop(t, table, now)
		}
		for range 10 {
			checkHolds(t, table, model, banID{rules[rnd.IntN(len(rules))], keys[rnd.IntN(len(keys))]}, hash, now)
		}
		if step%20 == 0 {
			compareBans(t, table, model, now)
		}
	}
}

// expireAll removes all bans that are not remembered any more, and returns how many.
func expireAll(table *Table, now int64) int {
	before := table.Len()
	keytable.Raise(&table.now, now)
	for in := range table.tables {
		in.Expire()
	}
	return before - table.Len()
}

func checkHolds(t *testing.T, table *Table, model *banModel, id banID, hash func(string) uint64, now int64) {
	t.Helper()
	until, ok := table.Until(id.rule, hash(id.key), []byte(id.key), now)
	b := model.bans[id]
	want := b != nil && now < b.Until
	if ok != want || ok && until != b.Until {
		t.Fatalf("rule %d, key %q: holds %v until %d, want %v, %+v", id.rule, id.key, ok, until, want, b)
	}
}

// compareBans compares the lists of bans, and the counts.
func compareBans(t *testing.T, table *Table, model *banModel, now int64) {
	t.Helper()
	checkTable(t, table)
	want, counts, i := model.held(now), table.Counts(now), 0
	byRule := map[uint32]int{}
	for got := range table.All(now) {
		got.counted = 0
		if i == len(want) || fmt.Sprintf("%+v", got) != fmt.Sprintf("%+v", want[i]) {
			t.Fatalf("ban %d of %d: %+v, want %+v", i, len(want), got, want[min(i, len(want)-1)])
		}
		byRule[got.Rule]++
		i++
	}
	if i != len(want) {
		t.Fatalf("%d bans are listed, want %d", i, len(want))
	}
	if fmt.Sprint(counts.Held) != fmt.Sprint(byRule) || counts.Refused != model.refused {
		t.Fatalf("counts %+v, want %v held and %d refused", counts, byRule, model.refused)
	}
}
