package replay_test

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/lately-go/lately/internal/test/randtest"
	"github.com/lately-go/lately/replay"
)

// TestTraffic compares the counts of values, of all events and of each of the busiest keys,
// with those of the lines that the test writes, on one core and several.
func TestTraffic(t *testing.T) {
	rnd := randtest.New(t)
	counts := map[string]map[string]int64{} // by client and field, and by field for all, of values
	sizes := map[string]int64{}
	count := func(who, field, value string) {
		of := who + " " + field
		if counts[of] == nil {
			counts[of] = map[string]int64{}
		}
		counts[of][value]++
	}
	var log strings.Builder
	for i := range 2000 {
		client := fmt.Sprintf("192.0.2.%d", rnd.IntN(9))
		size := int64(rnd.IntN(5000))
		values := map[string]string{
			"status": pick(rnd, "200", "304", "404", "500"), "method": pick(rnd, "GET", "POST"), "path": fmt.Sprintf("/%d", rnd.IntN(30)),
			"agent": fmt.Sprintf("agent/%d", rnd.IntN(4)), "referer": fmt.Sprintf("http://r%d.example/", rnd.IntN(3)),
		}
		for field, v := range values {
			count("", field, v)
			count(client, field, v)
		}
		sizes[""] += size
		sizes[client] += size
		fmt.Fprintf(&log, "%s - - [02/Mar/2026:10:%02d:00 +0000] \"%s %s HTTP/1.1\" %s %d \"%s\" \"%s\"\n", client, i/40, values["method"], values["path"],
			values["status"], size, values["referer"], values["agent"])
	}
	check := func(who string, got *replay.Traffic) {
		t.Helper()
		if got == nil || got.Bytes == nil || *got.Bytes != sizes[who] || len(got.Fields) != 5 {
			t.Fatalf("%q: %+v, want %d bytes and five fields", who, got, sizes[who])
		}
		for _, f := range got.Fields {
			want := counts[who+" "+f.Field]
			if f.Values != len(want) || len(f.Top) == 0 {
				t.Errorf("%q: %d values of %s, want %d", who, f.Values, f.Field, len(want))
			}
			for i, v := range f.Top {
				if n := want[v.Values()[0]]; v.Count != n || i > 0 && n > f.Top[i-1].Count {
					t.Errorf("%q: %d times %s %v, want %d", who, v.Count, f.Field, v.Values(), n)
				}
			}
		}
	}
	path := writeFile(t, "log", []byte(log.String()))
	for _, cores := range []int{1, 3} {
		r := mustRun(t, replay.Config{Files: []string{path}, Traffic: true, Cores: cores})
		check("", r.Traffic)
		for _, k := range r.Top {
			check(k.Values()[0], k.Traffic)
		}
		var text bytes.Buffer
		if err := r.WriteText(&text, replay.TextStyle{}); err != nil || !strings.Contains(text.String(), "The most frequent of 4 values of status\n") {
			t.Errorf("%v: no statuses in\n%s", err, text.Bytes())
		}
	}
	if r := mustRun(t, replay.Config{Files: []string{path}}); r.Traffic != nil || r.Top[0].Traffic != nil {
		t.Error("there is traffic that was not asked for")
	}
	c := replay.Config{Files: []string{path}, Traffic: true, Lateness: 1}
	if err := c.Validate(); err == nil || !strings.Contains(err.Error(), "--traffic: must not be given with --lateness") {
		t.Errorf("traffic with a lateness: %v", err)
	}
}
