package server

import (
	"strings"
	"testing"
)

func TestMemoryIsShared(t *testing.T) {
	for _, c := range []struct {
		name        string
		memory      int64 // in MiB, as set
		want        [6]int64
		connections int
		err         string
	}{
		{"nothing", 0, [6]int64{1024, 256, 256, 64, 64, 64}, 10_000, ""},
		{"memory", 512, [6]int64{512, 128, 128, 32, 32, 32}, 5_000, ""},
		{"much memory", 8192, [6]int64{8192, 2048, 2048, 512, 512, 512}, 10_000, ""},
		{"least memory", 256, [6]int64{256, 64, 64, 16, 16, 16}, 2_500, ""},
		{"too little", 255, [6]int64{}, 0, "memory: 267386880 bytes: must be at least 256 MiB"},
	} {
		in := Config{Memory: c.memory * mib}
		out, err := in.withDefaults()
		if c.err != "" {
			if err == nil || !strings.Contains(err.Error(), c.err) {
				t.Errorf("%s: %v; want %s", c.name, err, c.err)
			}
			continue
		}
		got := [6]int64{out.Memory / mib, out.limitBudget / mib, out.counterBudget / mib, out.callerBudget / mib, out.hotBudget / mib, out.requestBudget / mib}
		if err != nil || got != c.want || out.MaxConnections != c.connections {
			t.Errorf("%s: %d MiB, %d connections, %v; want %d, %d", c.name, got, out.MaxConnections, err, c.want, c.connections)
		}
	}
}

// Kept events, and trials on them, are part of the memory: the other budgets share the rest, and too
// little is refused with what it must be.
func TestMemoryOfKeptEvents(t *testing.T) {
	for _, c := range []struct {
		memory, kept int64 // in MiB
		want         [3]int64
		err          string
	}{
		{0, 64, [3]int64{1664, 256, 64}, ""},
		{1024, 64, [3]int64{1024, 96, 24}, ""},
		{1024, 16, [3]int64{1024, 192, 48}, ""},
		{1024, 128, [3]int64{}, "memory: 1073741824 bytes: must be at least 1408 MiB with keep-events of 134217728, which takes 1152 MiB with a trial"},
		{256, 1, [3]int64{}, "must be at least 392 MiB"},
	} {
		out, err := Config{Memory: c.memory * mib, KeepEvents: c.kept * mib}.withDefaults()
		if c.err != "" {
			if err == nil || !strings.Contains(err.Error(), c.err) {
				t.Errorf("%d MiB with %d: %v; want %s", c.memory, c.kept, err, c.err)
			}
			continue
		}
		if got := [3]int64{out.Memory / mib, out.limitBudget / mib, out.callerBudget / mib}; err != nil || got != c.want {
			t.Errorf("%d MiB with %d: %d, %v; want %d", c.memory, c.kept, got, err, c.want)
		}
		sum := out.limitBudget + out.counterBudget + out.callerBudget + out.hotBudget + out.requestBudget + keptMemory(out.KeepEvents)
		if sum > out.Memory {
			t.Errorf("%d MiB with %d: the budgets are %d MiB together", c.memory, c.kept, sum/mib)
		}
	}
}
