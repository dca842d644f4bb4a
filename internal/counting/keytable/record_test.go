package keytable_test

import (
	"fmt"
	"hash/maphash"
	"testing"
	"unsafe"

	"github.com/lately-go/lately/internal/counting/keytable"
	"github.com/lately-go/lately/internal/test/must"
)

// A Hint stays valid, whatever happens to the page.
func TestTableHintOfThePast(t *testing.T) {
	in, policy, _ := newTable(t, 4<<20, nil)
	type past struct {
		key  string
		hint keytable.Hint
		held bool
	}
	var hints []past
	for i := range uint64(4000) {
		key, absent := fmt.Sprint("key ", i), fmt.Sprint("other ", i)
		if i%9 == 0 { // before there is a record, and where none will be
			hints = append(hints, past{key, in.Prefetch(in.Hash(key)), true}, past{absent, in.Prefetch(in.Hash(absent)), false})
		}
		put(in, key, i, 9+i%2)
		if i%9 == 1 {
			hints = append(hints, past{key, in.Prefetch(in.Hash(key)), true})
		}
	}
	check := func(when string, held func(i uint64) bool) {
		for _, s := range hints {
			var i uint64
			fmt.Sscanf(s.key, "key %d", &i)
			r, state := in.LockAt(s.hint, in.Hash(s.key), s.key)
			if want := s.held && held(i); want != (state == keytable.Found) || want && r.Words()[0] != i {
				t.Fatalf("%s: %q has the state %d, want %t", when, s.key, state, want)
			}
			if state == keytable.Found {
				r.Unlock()
			}
		}
	}
	check("after growth", func(uint64) bool { return true })
	policy.now = 10
	in.Expire()
	check("after half have expired", func(i uint64) bool { return i%2 == 1 })
	in.DrainAll(func([]byte, keytable.Record) {})
	for _, s := range hints {
		if _, state := in.LockAt(s.hint, in.Hash(s.key), s.key); state != keytable.Moved {
			t.Fatalf("%q has the state %d in a drained page", s.key, state)
		}
	}
}

// Has does not wait for a locked record.
func TestTableHas(t *testing.T) {
	in, _, _ := newTable(t, 1<<20, nil)
	if in.Has(in.Hash("a"), "a") {
		t.Error("an empty table has a key")
	}
	r, _ := in.LockOrAdd(in.Hash("a"), "a")
	if !in.Has(in.Hash("a"), "a") || in.Has(in.Hash("b"), "b") {
		t.Error("a table does not have the one key that it has, or has another")
	}
	r.Unlock()
	in.Remove(in.Hash("a"), "a")
	if in.Has(in.Hash("a"), "a") {
		t.Error("a table has a key that was removed")
	}
}

// A record of eight words is one cache line.
func TestTableRecordIsALine(t *testing.T) {
	if unsafe.Sizeof(uintptr(0)) != 8 {
		t.Skip("the allocator's sizes are those of 64 bits")
	}
	in, _, _ := newTable(t, 8<<20, func(c *keytable.Config) { c.Words = 5 })
	for i := range 20_000 {
		key := fmt.Sprint(i)
		r, state := in.LockOrAdd(in.Hash(key), key)
		if state != keytable.Added || uintptr(unsafe.Pointer(&r.Words()[0]))%64 != 3*8 {
			t.Fatalf("record %d (%d) is at %p", i, state, &r.Words()[0])
		}
		r.Unlock()
	}
}

// The header of a group takes two cache lines; the fields that a hit reads, including the base of one window, are in the
// first.
func TestHeaderSize(t *testing.T) {
	if unsafe.Sizeof(uintptr(0)) != 8 {
		t.Skip("sizes are those of 64 bits")
	}
	if size, bases := keytable.HeaderSizes(); size > 128 || bases != 56 {
		t.Errorf("a group's header has %d bytes, its bases begin at %d; want 128 at most, and 56", size, bases)
	}
}

func BenchmarkTable(b *testing.B) {
	const keys = 1 << 18
	for _, c := range []keytable.Config{
		{Words: 1},
		{Words: 5},
	} {
		for _, length := range []int{11, 30} {
			b.Run(fmt.Sprintf("words=%d/length=%d", c.Words, length), func(b *testing.B) {
				c.Budget, c.Policy = keytable.NewBudget(1<<30), new(ages)
				in := must.Get(keytable.New(maphash.MakeSeed(), c))(b)
				names := make([]string, keys)
				for i := range names {
					names[i] = fmt.Sprintf("%0*d", length, i)
					r, _ := in.LockOrAdd(in.Hash(names[i]), names[i])
					r.Unlock()
				}
				i := uint32(0)
				for b.Loop() {
					i = i*1664525 + 1013904223
					key := names[i>>14]
					r, state := in.Lock(in.Hash(key), key)
					if state != keytable.Found {
						b.Fatal(state)
					}
					r.Words()[0]++
					r.Unlock()
				}
			})
		}
	}
}
