package client

import (
	"fmt"
	"math"
	"testing"
)

func nodesOf(addrs ...string) (nodes []*node) {
	for _, a := range addrs {
		nodes = append(nodes, &node{addr: a, hash: mix(fnv1a(fnvStart, a))})
	}
	return nodes
}

// Clients in other languages compute the same: these values must not change.
func TestScoreIsFixed(t *testing.T) {
	if h := fnv1a(fnvStart, "foobar"); h != 0x85944171f73967e8 { // of the authors of FNV
		t.Errorf("FNV-1a of foobar is %#x", h)
	}
	if h := mix(1); h != 0xb456bcfc34c2cb2c { // fmix64 of MurmurHash3
		t.Errorf("mix(1) is %#x", h)
	}
	if hashOf("a", "b") != mix(fnv1a(fnvStart, "a\x00b")) {
		t.Error("the bytes of a key differ from the rule, a zero byte and the values")
	}
	nodes := nodesOf("10.0.0.1:6380", "10.0.0.2:6380", "10.0.0.3:6380")
	got := ""
	for i := range 12 {
		best, _ := choose(nodes, hashOf("product", fmt.Sprint("/p/", i)), math.MaxUint64)
		got += best.addr[7:8]
	}
	const want = "322113211323" // computed by a program in Python
	if got != want {
		t.Errorf("keys are on the nodes %s, want %s", got, want)
	}
}

// Keys are spread evenly. Without a node only its keys move, evenly, to the next node in the order of their scores.
func TestChooseMovesKeysOfOneNode(t *testing.T) {
	const keys = 30_000
	all := nodesOf("a:1", "b:1", "c:1", "d:1", "e:1")
	without := append(append([]*node(nil), all[:2]...), all[3:]...)
	on, moved := map[string]int{}, map[string]int{}
	for i := range keys {
		key := hashOf("r", fmt.Sprint("user-", i))
		first, s := choose(all, key, math.MaxUint64)
		second, _ := choose(all, key, s)
		now, _ := choose(without, key, math.MaxUint64)
		on[first.addr]++
		switch {
		case first != all[2] && now != first:
			t.Fatalf("key %d moved from %s to %s", i, first.addr, now.addr)
		case first == all[2]:
			if moved[now.addr]++; now != second {
				t.Fatalf("key %d moved to %s, want %s", i, now.addr, second.addr)
			}
		}
	}
	for _, n := range all {
		if got := on[n.addr]; got < keys/5*9/10 || got > keys/5*11/10 {
			t.Errorf("%s has %d of %d keys, want about a fifth", n.addr, got, keys)
		}
		if got := moved[n.addr]; n != all[2] && (got < keys/20*8/10 || got > keys/20*12/10) {
			t.Errorf("%s got %d of about %d moved keys, want about a quarter", n.addr, got, keys/5)
		}
	}
	order := 0
	for below := uint64(math.MaxUint64); ; order++ {
		n, s := choose(all, 42, below)
		if n == nil {
			break
		}
		below = s
	}
	if order != len(all) {
		t.Errorf("the order of a key has %d nodes, want %d", order, len(all))
	}
}

func BenchmarkChoose(b *testing.B) {
	nodes := nodesOf("10.0.0.1:6380", "10.0.0.2:6380", "10.0.0.3:6380")
	for b.Loop() {
		choose(nodes, hashOf("product", "/product/1234567"), math.MaxUint64)
	}
}
