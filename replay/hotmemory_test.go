package replay_test

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/lately-go/lately/replay"
)

// floodLog is some keys that become hot, again and again, among others that come once.
func floodLog() []byte {
	var b bytes.Buffer
	for i := range 60_000 {
		fmt.Fprintf(&b, "%d.%03d,once-%d\n", i/1000, i%1000, i)
		if i%10 == 0 {
			fmt.Fprintf(&b, "%d.%03d,hot-%d\n", i/1000, i%1000, i/10%4)
		}
	}
	return b.Bytes()
}

// In bounded memory hot rules find the same keys as without a bound among keys that
// come once, report each of them once, and say how many others were evicted, with any
// number of cores.
func TestHotMemory(t *testing.T) {
	hot, err := replay.ParseWhatIf(replay.Hot, "client:40/2s")
	if err != nil {
		t.Fatal(err)
	}
	log := writeFile(t, "log", floodLog())
	config := replay.Config{Files: []string{log}, Format: smallFormat, WhatIfs: []replay.WhatIf{hot}}
	free := mustRun(t, config).Rules[0]
	if free.HotMemory != nil || *free.HotKeys != 4 {
		t.Fatalf("without a bound: %d keys, %+v", *free.HotKeys, free.HotMemory)
	}
	cores := []int{4, 1}
	if testing.Short() {
		cores = cores[:1]
	}
	for _, cores := range cores {
		config.HotMemory, config.Cores = 256<<10, cores
		report := mustRun(t, config)
		got := report.Rules[0]
		m := got.HotMemory
		if got.SHA256 != free.SHA256 || *got.HotKeys != *free.HotKeys {
			t.Errorf("%d cores: %d keys, with another digest; want %d", cores, *got.HotKeys, *free.HotKeys)
		}
		if m == nil || m.Limit != config.HotMemory || m.Bytes > m.Limit || m.Evicted < 30_000 || m.Keys > 10_000 {
			t.Errorf("%d cores: %+v; want that most keys were evicted", cores, m)
		}
		var out bytes.Buffer
		if err := report.WriteText(&out, replay.TextStyle{}); err != nil {
			t.Fatal(err)
		}
		if text := out.String(); !strings.Contains(text, "keys were evicted\n  the counts are lower bounds") {
			t.Errorf("the report is\n%s", text)
		}
	}
}

// A key that was hot, was evicted and is hot again is one key.
func TestHotMemoryCountsKeysOnce(t *testing.T) {
	hot, err := replay.ParseWhatIf(replay.Hot, "client:1/1ms")
	if err != nil {
		t.Fatal(err)
	}
	var log bytes.Buffer
	for i := range 30_000 {
		fmt.Fprintf(&log, "%d,k%d\n", i, i%10_000)
	}
	r := mustRun(t, replay.Config{
		Files: []string{writeFile(t, "log", log.Bytes())}, Format: smallFormat,
		WhatIfs: []replay.WhatIf{hot}, HotMemory: 256 << 10,
	}).Rules[0]
	if *r.HotKeys != 10_000 || r.HotMemory.Evicted == 0 {
		t.Errorf("%d keys are hot, %+v; want 10000, some of which were evicted", *r.HotKeys, r.HotMemory)
	}
}

func TestHotMemoryIsValidated(t *testing.T) {
	for what, want := range map[string]struct {
		whatIfs []string
		memory  int64
	}{
		"--memory-limit: 1000 bytes: too little: ": {[]string{"10/1s"}, 1000},
		"--memory-limit: -1: must be 1 or more":    {[]string{"10/1s"}, -1},
		"--memory-limit: no hot rule: ":            {nil, 1 << 20},
	} {
		c := replay.Config{Files: []string{"log"}, HotMemory: want.memory}
		for _, text := range want.whatIfs {
			hot, err := replay.ParseWhatIf(replay.Hot, text)
			if err != nil {
				t.Fatal(err)
			}
			c.WhatIfs = append(c.WhatIfs, hot)
		}
		if err := c.Validate(); err == nil || !strings.HasPrefix(err.Error(), what) {
			t.Errorf("%+v: %v; want %q", want, err, what)
		}
	}
}
