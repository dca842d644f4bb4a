package replay_test

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/lately-go/lately/internal/test/randtest"
	"github.com/lately-go/lately/replay"
)

// TestTraffic compares the counts of values, for all events and for each of the busiest keys, with those of the lines that
// the test writes, on one core and several.
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
		t.Error("unexpected traffic in the report")
	}
	r := mustRun(t, replay.Config{Files: []string{path}, Traffic: true, Lateness: time.Minute})
	if check("", r.Traffic); r.Top[0].Traffic != nil {
		t.Error("with a lateness, one key has traffic")
	}
}

// TestTrafficOfManyValues compares counts of more paths than are kept with exact ones: for random logs, and for the worst
// logs of such a table: each path once, before, between and after the frequent ones, and one path more than are kept, in
// turns.
func TestTrafficOfManyValues(t *testing.T) {
	const kept, lines = 64, 6000
	rnd := randtest.New(t)
	once := func(i int) string { return fmt.Sprintf("/once/%d", i) }
	frequent := func() string { return fmt.Sprintf("/%d", rnd.IntN(20)) }
	for name, pathOf := range map[string]func(i int) string{
		"random":     func(i int) string { return fmt.Sprintf("/%d", int(rnd.ExpFloat64()*60)) },
		"once first": func(i int) string { return pickIf(i < lines/2, once(i), frequent()) },
		"once last":  func(i int) string { return pickIf(i >= lines/2, once(i), frequent()) },
		"in between": func(i int) string { return pickIf(rnd.IntN(2) == 0, once(i), frequent()) },
		"in turns":   func(i int) string { return fmt.Sprintf("/%d", i%(kept+1)) },
	} {
		want, own := map[string]int64{}, map[string]map[string]int64{}
		var log strings.Builder
		for i := range lines {
			client, path := fmt.Sprintf("192.0.2.%d", rnd.IntN(3)), pathOf(i)
			want[path]++
			if own[client] == nil {
				own[client] = map[string]int64{}
			}
			own[client][path]++
			fmt.Fprintf(&log, "%s - - [02/Mar/2026:10:%02d:%02d +0000] \"GET %s HTTP/1.1\" 200 1\n", client, i/60%60, i%60, path)
		}
		file := writeFile(t, "log", []byte(log.String()))
		check := func(got *replay.Traffic, want map[string]int64, low int64) {
			t.Helper()
			for _, f := range got.Fields {
				if f.Field != "path" {
					continue
				}
				if f.More != (len(want) > kept) && low == 0 || f.Values > kept {
					t.Errorf("%s: %d values, more %v, of %d", name, f.Values, f.More, len(want))
				}
				found := map[string]bool{}
				for _, v := range f.Top {
					path, n := v.Values()[0], want[v.Values()[0]]
					if found[path] = true; v.Over > lines/kept || v.Count < n-low*v.Over || v.Count > n+v.Over {
						t.Errorf("%s: %s %d times, at most %d over, want %d", name, path, v.Count, v.Over, n)
					}
				}
				for path, n := range want {
					if n > 2*lines/kept && low == 0 && !found[path] {
						t.Errorf("%s: %s, %d times, is not among %d", name, path, n, len(f.Top))
					}
				}
			}
		}
		for _, lateness := range []time.Duration{0, time.Hour} {
			c := replay.Config{Files: []string{file}, Traffic: true, Lateness: lateness, Top: kept}
			c.InPieces(500)
			c.Frequent(kept)
			r := mustRun(t, c)
			check(r.Traffic, want, 0)
			for _, k := range r.Top {
				if lateness == 0 {
					check(k.Traffic, own[k.Values()[0]], 1)
				}
			}
		}
		c := replay.Config{Files: []string{file}, Traffic: true, Top: 9, Key: "path"} // a field of the key
		c.Frequent(kept)
		for _, v := range mustRun(t, c).Traffic.Fields[2].Top {
			if v.Over != 0 || v.Count != want[v.Values()[0]] {
				t.Errorf("%s: as the key, %v %d times, want %d", name, v.Values(), v.Count, want[v.Values()[0]])
			}
		}
	}
}

func pickIf(is bool, a, b string) string {
	if is {
		return a
	}
	return b
}
