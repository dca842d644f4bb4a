package replay_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"runtime"
	"testing"
	"time"

	"github.com/lately-go/lately/internal/test/accesslogtest"
	"github.com/lately-go/lately/internal/test/must"
	"github.com/lately-go/lately/internal/test/randtest"
	"github.com/lately-go/lately/replay"
)

// TestConcurrentCores replays a log of many blocks on different numbers of cores and
// processors: all but the time it took is the same, to the byte.
func TestConcurrentCores(t *testing.T) {
	rnd := randtest.New(t)
	var files []string
	for i := range 2 {
		log := generated(t, rnd, "clf", accesslogtest.Config{Lines: 9_000, Duration: time.Duration(2-i) * 30 * time.Minute})
		if len(log) < 2*blockSize {
			t.Fatalf("the log has %d bytes, not enough for several blocks", len(log))
		}
		files = append(files, writeFile(t, fmt.Sprint("access.log.", i), log))
	}
	whatIfs := []replay.WhatIf{
		whatIf(t, replay.Limit, "100/5m"), whatIf(t, replay.Hot, "20/10s"), whatIf(t, replay.Hot, "client:20/10s"),
	}
	runs := []struct{ cores, processors int }{{1, 1}, {3, 2}, {2, 1}, {2, 2}, {8, 2}}
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(0))
	for name, base := range map[string]replay.Config{
		"what-ifs":    {WhatIfs: whatIfs},
		"object bans": {WhatIfs: []replay.WhatIf{whatIf(t, replay.Ban, "9/10s:1m")}, Key: "object"},
		"spread": {Rules: mustRules(t, `
version: 1
limits: [{name: a, key: client, limit: 6 per 10s, ban: {after: 9 refusals in 1m, for: 2m}}, {name: b, key: client, limit: 9 per 1s, mode: shadow}]
hot: [{name: h, key: [client, path], threshold: 9 per 10s}]
`)},
		"joined": {Rules: mustRules(t, `
version: 1
limits: [{name: a, key: client, limit: 30 per 10s}, {name: b, key: path, limit: 20 per 1s}]
bans: [{name: c, key: [path, client], after: 9 hits in 3s, for: 1m}]
`)},
	} {
		t.Run(name, func(t *testing.T) {
			var first string
			refused := 0
			for _, run := range runs {
				runtime.GOMAXPROCS(run.processors)
				c := base
				c.Files, c.Cores = files, run.cores
				r, decisions := mustDecide(t, c)
				r.ElapsedSeconds = 0
				out := must.Get(json.Marshal(r))(t)
				var text bytes.Buffer
				must.Do(t, r.WriteText(&text, replay.TextStyle{Bad: true}))
				all := fmt.Sprintf("%s\n%s\n%s", out, text.Bytes(), decisions)
				refused += bytes.Count(decisions, []byte("D"))
				if first == "" {
					first = all
				}
				if all != first {
					t.Errorf("%d cores on %d processors: not what one core prints:\n%.3000s\n%.3000s", run.cores, run.processors, all, first)
				}
			}
			if refused == 0 {
				t.Error("nothing was refused: the test has no teeth")
			}
		})
	}
}

// TestWhatIfsAreNotChanged runs one slice of what-ifs twice, with different keys: the first run must not change them.
func TestWhatIfsAreNotChanged(t *testing.T) {
	path := writeFile(t, "a.json", []byte(`{"t":1,"c":"a","o":"x","u":"u"}`+"\n"+`{"t":2,"c":"a","o":"y"}`+"\n"))
	whatIfs := []replay.WhatIf{whatIf(t, replay.Limit, "1/1s")}
	for key, want := range map[string]int64{"client": 2, "object": 2, "user": 1} {
		r := mustRun(t, replay.Config{Files: []string{path}, Format: "json:time=t@s,client=c,object=o,user=u", WhatIfs: whatIfs, Key: key})
		if r.Rules[0].Fields[0] != key || *r.Rules[0].Allowed != want {
			t.Errorf("key %s: %v, %d allowed", key, r.Rules[0].Fields[0], *r.Rules[0].Allowed)
		}
	}
}

// blockSize is the package's own.
const blockSize = 512 << 10
