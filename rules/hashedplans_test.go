package rules

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lately-go/lately/internal/event/intake"
	"github.com/lately-go/lately/internal/rule/hashedplans"
	"github.com/lately-go/lately/internal/test/must"
	"github.com/lately-go/lately/match"
	"github.com/lately-go/lately/ratelimit"
)

const hashedPlanFile = "version: 1\nfields: {api_key: {header: X-API-Key, hash: true}}\nlimits:\n- {name: a, key: api_key, limit: {by: api_key, plans: plans.txt, default: 60 per 1m, at_most: 10000 per 1m}}\n"

// writePlans writes the rules and a file of plans, and returns the name of the rules file.
func writePlans(t testing.TB, plans string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range map[string]string{"rules.yaml": hashedPlanFile, "plans.txt": plans} {
		must.Do(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
	}
	return filepath.Join(dir, "rules.yaml")
}

// hashedLimit returns the N that an API key is judged by.
func hashedLimit(l *ratelimit.Limiter, key [32]byte, value string) uint64 {
	var e match.Event
	e.SetNamedString("api_key", value)
	intake.New(l.Set().Internal().Sources(), key).Event(&e, new(intake.Digests))
	return l.Peek(&e).Limit
}

// TestHashedPlans finds plans by the digests of keys, under the key of each limiter and after it has changed, and keeps
// none of the keys.
func TestHashedPlans(t *testing.T) {
	path := writePlans(t, "k-S3CRET-1 600\nk-S3CRET-2 1200 per 1m\n")
	file, err := Load(path)
	if err != nil {
		t.Fatal(err)
	}
	l := must.Get(ratelimit.NewLimiter(file.Limits, ratelimit.Config{}))(t)
	key := intake.ProcessKey()
	check := func() {
		t.Helper()
		for of, want := range map[string]uint64{"k-S3CRET-1": 600, "k-S3CRET-2": 1200, "k-S3CRET-3": 60} {
			if n := hashedLimit(l, key, of); n != want {
				t.Errorf("%s is judged by %d, want %d", of, n, want)
			}
		}
	}
	check()
	key = [32]byte{2}
	use := must.Get(hashedplans.Rekey(file.Limits, key))(t)
	use()
	check()
	must.Get(file.Draft("draft", []byte(hashedPlanFile)))(t)
	check()
	if secrets := find(file, "S3CRET"); secrets != "" {
		t.Errorf("the rules have %s", secrets)
	}
	if text := strings.Join(file.Sentences(), "\n"); !strings.Contains(text, "plans.txt has for the field api_key (2 lines)") {
		t.Errorf("the sentences are %s", text)
	}
	// The control: keys that are not hashed are found.
	must.Do(t, os.WriteFile(path, []byte(strings.Replace(hashedPlanFile, ", hash: true", "", 1)), 0o600))
	if file, err = Load(path); err != nil || find(file, "S3CRET") == "" {
		t.Errorf("plain plans are not found: %v", err)
	}
}

// find returns the bytes of a file's plans that have the mark, and the mistakes that name it.
func find(f *File, mark string) string {
	for _, t := range f.plans {
		lines := []planLines{t.planLines}
		if t.hashed != nil {
			lines = append(lines, t.hashed.digests.Load().planLines)
		}
		for _, l := range lines {
			if bytes.Contains(l.text, []byte(mark)) {
				return string(l.text)
			}
		}
	}
	return ""
}

// TestHashedPlanMistakes describes the mistakes of a file without its keys.
func TestHashedPlanMistakes(t *testing.T) {
	for text, want := range map[string]string{
		"k-S3CRET\n":                      "plans.txt:1:9: no number: must be",
		"k-S3CRET 0\n":                    "plans.txt:1:10: must be 1 or more",
		"k S3CRET 9\n":                    "plans.txt:1:3: must be",
		"k-S3CRET 99999\n":                "plans.txt:1:10: must be at most 10000, which is at_most",
		"k-S3CRET 9\nk-S3CRET 8\n":        "plans.txt:2:1: key twice: must be given once, and line 1 has it",
		"k-S3CRET 60 per 1h\nother-key 5": "plans.txt:1:10: must have the span",
	} {
		_, err := Load(writePlans(t, text))
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "S3CRET") {
			t.Errorf("%q: %v; want %q", text, err, want)
		}
	}
}

// TestConcurrentHashedPlansChange reads a changed file again, and keeps the digests of an unchanged one.
func TestConcurrentHashedPlansChange(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		path := writePlans(t, "k-1 600\n")
		file := must.Get(Load(path))(t)
		l := must.Get(ratelimit.NewLimiter(file.Limits, ratelimit.Config{}))(t)
		ctx, stop := context.WithCancel(t.Context())
		defer stop()
		go Watch(ctx, l, nil, path)
		for i := range 3 {
			time.Sleep(3 * time.Second)
			if n := hashedLimit(l, intake.ProcessKey(), "k-1"); n != uint64(600+i) {
				t.Errorf("change %d: judged by %d", i, n)
			}
			must.Do(t, os.WriteFile(filepath.Join(filepath.Dir(path), "plans.txt"), fmt.Appendf(nil, "k-1 %d\n", 601+i), 0o600))
		}
		stop()
		synctest.Wait()
	})
}

// TestHashedPlansAreKept takes over the digests of a file that has not changed when the rules have.
func TestHashedPlansAreKept(t *testing.T) {
	path := writePlans(t, "k-1 600\n")
	file := must.Get(Load(path))(t)
	again := must.Get((&reader{onDisk: true, plansBefore: file.plans}).readWhole(file.sources))(t)
	if again.plans[0] != file.plans[0] || !reflect.DeepEqual(file.Limits.Rules()[0], again.Limits.Rules()[0]) {
		t.Error("the plans were read again")
	}
}

// BenchmarkHashedPlans reads a million lines as digests.
func BenchmarkHashedPlans(b *testing.B) {
	var text strings.Builder
	for i := range 1_000_000 {
		fmt.Fprintf(&text, "sk-live-%024d %d\n", i, 60+i%1000)
	}
	file := must.Get(Load(writePlans(b, text.String())))(b)
	key := [32]byte{}
	for b.Loop() {
		key[0]++
		use := must.Get(file.plans[0].Rekey(key))(b)
		use()
	}
	d := file.plans[0].hashed.digests.Load()
	b.ReportMetric(float64(len(d.text)+8*len(d.slots))/1e6, "MB")
}
