package ban

import (
	"bytes"
	"fmt"
	"hash/maphash"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/lately-go/lately/internal/counting/keytable"
)

// TestBanKeysAreDistinct bans one key of many that all have one hash, and are
// alike but for a byte, or their length: no other is banned by it.
func TestBanKeysAreDistinct(t *testing.T) {
	var keys [][]byte
	for _, n := range []int{0, 1, 7, 8, 9, 14, 15, 16, 17, 31, 32, 33, 64, 65, 500, MaxKey - 1, MaxKey} {
		zeros := make([]byte, n)
		keys = append(keys, zeros)
		for _, at := range []int{0, 7, 8, 15, 16, n / 2, n - 1} {
			if 0 <= at && at < n {
				other := bytes.Clone(zeros)
				other[at] = 1
				keys = append(keys, other)
			}
		}
	}
	slices.SortFunc(keys, bytes.Compare)
	keys = slices.CompactFunc(keys, bytes.Equal)
	rules := []uint32{0, 1, 8, math.MaxUint32}
	for i, banned := range keys {
		table := NewTable(Config{})
		if _, ok := table.Start(1, 7, banned, &Policy{Span: time.Second, For: time.Hour}, 0, 0); !ok {
			t.Fatalf("a key of %d bytes: no ban", len(banned))
		}
		for j, key := range keys {
			for _, rule := range rules {
				if _, ok := table.Until(rule, 7, key, 1); ok != (i == j && rule == 1) {
					t.Fatalf("key %d under rule 1 is banned; key %d under rule %d: %v", i, j, rule, ok)
				}
			}
		}
	}
	long := make([]byte, MaxKey+1)
	table := NewTable(Config{})
	if _, ok := table.Start(1, 7, long, &Policy{Span: time.Second, For: time.Hour}, 0, 0); ok || table.Counts(0).Refused != 1 {
		t.Error("a ban of a key that is too long has begun, or its refusal was not counted")
	}
}

// TestBanTableManyRules bans one key under many rules, which lie close together.
func TestBanTableManyRules(t *testing.T) {
	table := NewTable(Config{})
	key, b := []byte("k"), &Policy{Span: time.Second, For: time.Hour}
	const rules = 1024
	for r := range uint32(rules) {
		table.Start(2*r, 1, key, b, int64(r), 0)
	}
	checkTable(t, table)
	for r := range uint32(rules) {
		until, ok := table.Until(2*r, 1, key, rules)
		if _, other := table.Until(2*r+1, 1, key, rules); !ok || until != int64(r)+int64(time.Hour) || other {
			t.Fatalf("rule %d: %v until %d, and for another rule: %v", r, ok, until, other)
		}
	}
	table.KeepRules(func(rule uint32) bool { return rule%4 == 0 })
	if n := table.Counts(rules).Len; n != rules/2 {
		t.Errorf("%d bans after half of the rules have gone, want %d", n, rules/2)
	}
	for r := range uint32(rules) {
		if !table.Remove(4*r, 1, key, rules) && r < rules/2 {
			t.Fatalf("the ban of rule %d is not there", 4*r)
		}
	}
	checkTable(t, table)
	if n := table.Counts(0).Len; n != 0 {
		t.Errorf("%d bans are left", n)
	}
}

// TestBanFlood has a million keys begin a ban in a table of ten thousand: the first hold to their ends, the others are
// refused and counted, and bans by hand are still added. When the first have ended, others take their places.
func TestBanFlood(t *testing.T) {
	const most, reserve = 10_000, 500
	flood := 1_000_000
	if testing.Short() {
		flood = 50_000
	}
	table := newTable(Config{}, most, reserve)
	seed := maphash.MakeSeed()
	b := &Policy{Span: time.Second, For: time.Hour}
	key := func(i int) ([]byte, uint64) {
		k := fmt.Appendf(nil, "2001:db8:%x:%x::/64", i>>16, i&0xffff)
		return k, maphash.Bytes(seed, k)
	}
	begun := 0
	for i := range flood {
		k, h := key(i)
		if until, ok := table.Start(3, h, k, b, int64(i), 0); ok {
			begun++
			if until != int64(i)+int64(time.Hour) || i >= most-reserve {
				t.Fatalf("ban %d begins and ends at %d", i, until)
			}
		}
	}
	if begun != most-reserve {
		t.Fatalf("%d bans have begun, want %d", begun, most-reserve)
	}
	for i := range reserve {
		k, h := key(-i - 1)
		ban := Ban{Rule: 3, Key: k, Until: int64(time.Hour), Source: SourceManual, Reason: "by hand", Memory: time.Hour}
		if got := table.Add(h, &ban, int64(flood)); got != Added {
			t.Fatalf("ban %d by hand: %d", i, got)
		}
		if i == 0 {
			ban.Source = SourceRule
			k, h := key(-reserve - 1)
			ban.Key = k
			if got := table.Add(h, &ban, int64(flood)); got != Full {
				t.Errorf("a rule's ban that is added takes the reserve: %d", got)
			}
		}
	}
	k, h := key(-reserve - 1)
	if got := table.Add(h, &Ban{Rule: 3, Key: k, Until: int64(time.Hour), Source: "x", Memory: time.Hour}, int64(flood)); got != Full {
		t.Errorf("one more by hand than there is memory for: %d", got)
	}
	checkTable(t, table)
	for i := range most - reserve {
		k, h := key(i)
		if until, ok := table.Until(3, h, k, int64(i)+int64(time.Hour)-1); !ok || until != int64(i)+int64(time.Hour) {
			t.Fatalf("ban %d has gone, or ends at %d", i, until)
		}
	}
	if c := table.Counts(int64(flood)); c.Held[3] != most || c.Refused != uint64(flood-most+reserve) || c.Dropped != 0 {
		t.Errorf("counts %+v, want %d refused", c, flood-most+reserve)
	}
	// at this time, ten of the first have ended
	now := int64(time.Hour) + 9
	for i := range 20 {
		k, h := key(flood + i)
		if _, ok := table.Start(3, h, k, b, now, 0); ok != (i < 10) {
			t.Fatalf("ban %d after ten have ended: %v", i, ok)
		}
	}
}

// TestOldestEndGoesFirst fills a table with bans that have ended and begins others: bans that hold stay, and the others are
// dropped in the order of their ends, some at a time.
func TestOldestEndGoesFirst(t *testing.T) {
	const most, begun = 2000, 1000
	table := newTable(Config{}, most, 0)
	b := &Policy{Span: time.Second, For: time.Second, Factor: 2, Remember: MaxSpan}
	seed := maphash.MakeSeed()
	key := func(i int) ([]byte, uint64) {
		k := fmt.Append(nil, i)
		return k, maphash.Bytes(seed, k)
	}
	for i := range most {
		k, h := key(i)
		table.Start(0, h, k, b, int64(i*7919%most), 0) // ends in another order than it was added
	}
	now := int64(time.Minute)
	for i := range begun {
		k, h := key(10_000 + i)
		table.Start(0, h, k, b, now, 0)
	}
	checkTable(t, table)
	c := table.Counts(now)
	if c.Dropped < begun || c.Dropped > begun+100 || c.Held[0] != begun {
		t.Fatalf("counts %+v, want little more than 1000 dropped, and 1000 held", c)
	}
	var there, sum [2]int // of the dropped ones, and of the remaining ones
	for i := range most {
		k, h := key(i)
		rank, which := i*7919%most, 0
		if r, in := table.find(identity(0, h), k); in != nil {
			r.Unlock()
			which = 1
		}
		sum[which] += rank
		there[which]++
	}
	if first, last := sum[0]/there[0], sum[1]/there[1]; first > most*2/5 || last < most*3/5 {
		t.Errorf("those that are gone ended %d. on average, those that are left %d.", first, last)
	}
}

// TestBanBudget gives the table less memory than its number of bans takes. It never takes more, active bans stay, and the
// reserve is available.
func TestBanBudget(t *testing.T) {
	for _, kib := range []int64{0, 64, 256, 1024, 4096} {
		const reserve = 100
		budget := keytable.NewBudget(kib << 10)
		table := newTable(Config{Budget: budget}, 1<<20, reserve)
		aside := min(reserveBase+reserve*reserveBytes, kib<<10/reservePart)
		if most := aside + 16<<10; budget.Used() < aside || budget.Used() > most {
			t.Fatalf("%d bytes are used by an empty table, want %d to %d", budget.Used(), aside, most)
		}
		seed, b := maphash.MakeSeed(), &Policy{Span: time.Second, For: time.Hour}
		long := []byte(strings.Repeat("x", 100))
		var banned []int
		keys := 60_000
		if testing.Short() {
			keys = 6000
		}
		for i := range keys {
			k := fmt.Append(nil, i)
			if i%10 == 0 {
				k = append(k, long...)
			}
			if _, ok := table.Start(0, maphash.Bytes(seed, k), k, b, 0, 0); ok {
				banned = append(banned, i)
			}
			if used := budget.Used(); used > budget.Limit() {
				t.Fatalf("%d bytes are used of %d", used, budget.Limit())
			}
		}
		checkTable(t, table)
		for _, i := range banned {
			k := fmt.Append(nil, i)
			if i%10 == 0 {
				k = append(k, long...)
			}
			if _, ok := table.Until(0, maphash.Bytes(seed, k), k, 1); !ok {
				t.Fatalf("the ban of key %d is gone", i)
			}
		}
		perBan := float64(budget.Used()-aside) / float64(max(len(banned), 1))
		t.Logf("%d KiB: %d bans, %.0f bytes each", kib, len(banned), perBan)
		if kib >= 256 && perBan > 150 {
			t.Errorf("%d KiB hold %d bans only", kib, len(banned))
		}
		if kib < 4096 { // a smaller one does not set enough aside
			continue
		}
		for i := range reserve {
			k := fmt.Append(nil, -i, "by hand, with a key that is a little longer")
			ban := Ban{Rule: 0, Key: k, Until: int64(time.Hour), Source: "manual by someone", Reason: "a reason that takes some bytes"}
			if got := table.Add(maphash.Bytes(seed, k), &ban, 0); got != Added {
				t.Fatalf("ban %d by hand: %d", i, got)
			}
		}
	}
}

// TestBanBudgetOfEndedBans fills the budget with bans that end and are remembered: others take their memory, the budget is
// kept, and most remembered bans stay.
func TestBanBudgetOfEndedBans(t *testing.T) {
	budget := keytable.NewBudget(256 << 10)
	table := newTable(Config{Budget: budget}, 1<<14, 0)
	seed, b := maphash.MakeSeed(), &Policy{Span: time.Second, For: time.Second, Remember: MaxSpan}
	begin := func(i int, now int64) bool {
		k := fmt.Append(nil, i, strings.Repeat("long", i%8))
		_, ok := table.Start(0, maphash.Bytes(seed, k), k, b, now, 0)
		if used := budget.Used(); used > budget.Limit() {
			t.Fatalf("%d bytes are used of %d", used, budget.Limit())
		}
		return ok
	}
	n := 0
	for refused := 0; refused < 100; n++ {
		if !begin(n, 0) {
			refused++
		}
	}
	had := table.Len()
	for round := range 5 {
		now := int64(round+1) * int64(time.Minute)
		for range had / 4 {
			if n++; !begin(n, now) {
				t.Fatalf("round %d: no memory, although %d bans have ended", round, table.Len()-table.Counts(now).Held[0])
			}
		}
		checkTable(t, table)
		if c := table.Counts(now); c.Held[0] != had/4 || c.Len < had*3/4 {
			t.Fatalf("round %d: %d bans hold and %d are stored, want %d of about %d", round, c.Held[0], c.Len, had/4, had)
		}
	}
}

// TestBanTableOfReplay has the table of a replay, where times go back from key to key: nothing is evicted, whatever the
// time, and nothing set aside.
func TestBanTableOfReplay(t *testing.T) {
	budget := keytable.NewBudget(1 << 62)
	table := NewTable(Config{Budget: budget, Most: MaxMost, Keep: true})
	if budget.Used() > 1<<20 {
		t.Errorf("an empty table takes %d bytes", budget.Used())
	}
	b := &Policy{Span: time.Second, For: time.Second, Factor: 2, Remember: time.Second}
	for i := range 1000 {
		now := int64(1000-i) * int64(time.Hour)
		table.Start(0, uint64(i), fmt.Append(nil, i), b, now, 0)
	}
	if n := table.Counts(0).Len; n != 1000 {
		t.Errorf("%d bans are stored, want 1000", n)
	}
	if h := (Ban{Key: []byte("k"), Until: 1, Source: SourceManual}); table.Add(1, &h, 0) != Added {
		t.Error("a ban by hand is refused for lack of memory")
	}
}

// TestCountsOfManyBans begins and ends bans between calls of Counts, which looks at all of
// few bans each time, and at many only after some time.
func TestCountsOfManyBans(t *testing.T) {
	for _, many := range []int{0, manyBans} {
		table, b := NewTable(Config{}), &Policy{Span: time.Second, For: time.Hour}
		start := func(from, to int, now int64) {
			for i := from; i < to; i++ {
				table.Start(1, uint64(i), fmt.Append(nil, i), b, now, 0)
			}
		}
		held := func(now int64) int { return table.Counts(now).Held[1] }
		start(0, many+1, 0)
		wait := int64(many+2) * int64(countEvery)
		if got := held(0); got != many+1 {
			t.Fatalf("%d bans hold, want %d", got, many+1)
		}
		start(many+1, many+2, 1)
		old := many + 1
		if many == 0 {
			old = 2
		}
		for now, want := range map[int64]int{1: old, wait - 1: old, wait: many + 2} {
			table.held.Store(&heldBans{at: 0, rules: map[uint32]int{1: many + 1}})
			if got := held(now); got != want {
				t.Errorf("%d bans: %d hold at %d, want %d", many+2, got, now, want)
			}
		}
		if got := held(int64(time.Hour)); got != 1 {
			t.Errorf("%d bans: %d hold after all but one have ended", many+2, got)
		}
		if got := held(1); got != many+2 {
			t.Errorf("%d bans: %d hold at an earlier time, want all", many+2, got)
		}
	}
}

// TestBanMemoryIsUsedAgain unbans all bans and begins as many: no more memory is taken than the first time, except for
// differences between the shards.
func TestBanMemoryIsUsedAgain(t *testing.T) {
	budget := keytable.NewBudget(1 << 30)
	table := NewTable(Config{Budget: budget, Most: 20_000})
	b, seed := &Policy{Span: time.Second, For: time.Hour}, maphash.MakeSeed()
	n := 15_000
	if testing.Short() {
		n = 2000
	}
	fill := func() {
		for i := range n {
			k := fmt.Append(nil, i, strings.Repeat("long", i%8))
			if _, ok := table.Start(0, maphash.Bytes(seed, k), k, b, 0, 0); !ok {
				t.Fatal("no memory")
			}
		}
	}
	fill()
	once := budget.Used()
	for range 5 {
		held := table.Len()
		table.KeepRules(func(uint32) bool { return false })
		if gone := held - table.Len(); gone != n {
			t.Fatalf("%d bans removed, want %d", gone, n)
		}
		checkTable(t, table)
		fill()
	}
	if budget.Used() > once+once/4 {
		t.Errorf("%d bytes used, %d the first time", budget.Used(), once)
	}
}

func TestBanTableDoesNotAllocate(t *testing.T) {
	table := NewTable(Config{Most: 100_000})
	seed := maphash.MakeSeed()
	short, long := []byte("192.0.2.1"), []byte("2001:db8:1234:5678::/64")
	b := &Policy{Span: time.Second, For: time.Hour, Factor: 2, Extend: true}
	now := int64(0)
	for _, key := range [][]byte{short, long} {
		h := maphash.Bytes(seed, key)
		table.Start(1, h, key, b, now, 0)
		if n := testing.AllocsPerRun(100, func() {
			now += int64(time.Minute)
			table.Start(1, h, key, b, now, 0)
			table.Extend(1, h, key, b, now, 0)
			table.Until(1, h, key, now)
			table.Until(2, h, key, now)
		}); n != 0 {
			t.Errorf("%v allocations", n)
		}
	}
}

// TestBanTimes has the two ends of the range of times, and the longest ban.
func TestBanTimes(t *testing.T) {
	table := NewTable(Config{})
	b := &Policy{Span: MaxSpan, For: MaxSpan, Jitter: 0, Remember: MaxSpan}
	for i, now := range []int64{
		keytable.Nanos(time.Time{}, MaxSpan), -1, 0, 1, keytable.Nanos(time.Unix(1<<60, 0), MaxSpan),
	} {
		key := fmt.Append(nil, i)
		until, ok := table.Start(0, uint64(i), key, b, now, 0)
		if want := now + int64(MaxSpan); !ok || until != want {
			t.Fatalf("a ban at %d: %v until %d", now, ok, until)
		}
		for _, c := range []struct {
			at   int64
			held bool
		}{{now, true}, {until - 1, true}, {until, false}, {until + 1, false}} {
			if _, held := table.Until(0, uint64(i), key, c.at); held != c.held {
				t.Errorf("the ban at %d until %d holds at %d: %v", now, until, c.at, held)
			}
			listed := slices.ContainsFunc(slices.Collect(table.All(c.at)), func(b Ban) bool { return bytes.Equal(b.Key, key) })
			if listed != c.held {
				t.Errorf("the ban at %d until %d is listed at %d: %v", now, until, c.at, listed)
			}
		}
	}
}

// TestBanAtNoTime adds bans as of the earliest possible time, as a store does that has not judged anything yet: none of
// them counts as ended long ago.
func TestBanAtNoTime(t *testing.T) {
	table := NewTable(Config{})
	for i := range 100 {
		for _, now := range []int64{math.MinInt64, math.MinInt64 + 1} {
			h := Ban{Key: fmt.Append(nil, i, now), Until: int64(i), Source: SourceManual, Memory: MaxSpan}
			if got := table.Add(1, &h, now); got != Added {
				t.Fatalf("added: %d", got)
			}
		}
	}
	if c := table.Counts(math.MinInt64); c.Len != 200 || c.Held[0] != 200 {
		t.Errorf("%+v, want 200 bans held", c)
	}
}

// TestManualBanDoesNotEscalate adds bans by hand between those of a rule.
func TestManualBanDoesNotEscalate(t *testing.T) {
	table := NewTable(Config{})
	b := &Policy{Span: time.Second, For: time.Minute, Factor: 2}
	key, now := []byte("k"), int64(0)
	for i := range 4 {
		until, _ := table.Start(0, 1, key, b, now, 0)
		if want := now + int64(time.Minute)<<i; until != want {
			t.Fatalf("ban %d lasts until %d, want %d", i+1, until, want)
		}
		now = until
		h := Ban{Key: key, Since: now, Until: now + 1e9, Source: SourceManual, Memory: b.Remembered()}
		if got := table.Add(1, &h, now); got != Added {
			t.Fatalf("added: %d", got)
		}
		now += 1e9
	}
}
