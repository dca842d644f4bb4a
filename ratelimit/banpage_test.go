package ratelimit_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	bans "github.com/lately-go/lately/internal/ban"
	"github.com/lately-go/lately/internal/test/must"
	"github.com/lately-go/lately/internal/test/randtest"
	"github.com/lately-go/lately/ratelimit"
)

// pageRules is two rules, one with a key of two values.
// A pagedMemory is a Memory and a Limiter over it.
type pagedMemory struct {
	*ratelimit.Memory
	limiter *ratelimit.Limiter
}

func (m *pagedMemory) page(now time.Time, q bans.Query) (ratelimit.BanPage, error) {
	return m.limiter.BansAt(now).Page(q)
}

func pageMemory(t testing.TB) *pagedMemory {
	t.Helper()
	set := mustSet(t,
		ratelimit.Rule{Name: "one", Key: mustKey(t, "user"), Ban: &ratelimit.Ban{After: 1, Span: time.Minute, For: time.Hour}},
		ratelimit.Rule{Name: "two", Key: mustKey(t, "user", "path"), Ban: &ratelimit.Ban{After: 1, Span: time.Minute, For: time.Hour}},
	)
	m := must.Get(ratelimit.NewMemory(set, ratelimit.Config{}))(t)
	return &pagedMemory{m, ratelimit.Over(set, m)}
}

// pages returns all bans that q selects, page by page.
func pages(t testing.TB, m *pagedMemory, now time.Time, q bans.Query, between func()) (all []ratelimit.BanRecord) {
	t.Helper()
	for n := 0; ; n++ {
		p, err := m.page(now, q)
		if err != nil || len(p.Bans) > q.Limit || n > 10_000 {
			t.Fatalf("page %d has %d bans, %v", n, len(p.Bans), err)
		}
		all = append(all, p.Bans...)
		if p.Next == "" {
			return all
		}
		q.Cursor = p.Next
		if between != nil {
			between()
		}
	}
}

// TestBanPagesAgainstAList compares pages of random bans with a list that is filtered
// and sorted as a whole.
func TestBanPagesAgainstAList(t *testing.T) {
	rnd := randtest.New(t)
	m := pageMemory(t)
	start := at(1_700_000_000_000)
	var list []ratelimit.BanRecord
	for i := range 5000 {
		b := ratelimit.BanRecord{
			Rule: "one", Key: []string{fmt.Sprint("u", i)}, Since: start.Add(time.Duration(rnd.IntN(2000)) * time.Millisecond), Source: "rule",
			Reason: "more than 1 hits in 1m",
		}
		if i%2 == 0 {
			b.Rule, b.Key = "two", []string{fmt.Sprint("u", i), strings.Repeat("/p", rnd.IntN(20)+1)}
		}
		if i%3 == 0 {
			b.Source, b.Reason = "manual", fmt.Sprint("because of ", i%7)
		}
		b.Until = b.Since.Add(time.Duration(rnd.IntN(4000)+1) * time.Millisecond)
		must.Do(t, m.Ban(context.Background(), b))
		list = append(list, b)
	}
	now := start.Add(2500 * time.Millisecond)
	for _, q := range []bans.Query{
		{},
		{Rule: "one"},
		{Rule: "two"},
		{Text: "u12"},
		{Text: "/p/p/p/p/p/p/p/p"},
		{Text: "because of 3"},
		{Text: "more than 1 hit in 1m"},
		{Rule: "one", Text: "1"},
		{Text: "nowhere"},
		{Text: "7\x02/p"},
	} {
		want := map[string]bool{}
		for _, b := range list {
			text := q.Text == "" || strings.Contains(b.Reason, q.Text) || slices.ContainsFunc(b.Key, func(v string) bool { return strings.Contains(v, q.Text) })
			if b.Until.After(now) && (q.Rule == "" || q.Rule == b.Rule) && text {
				want[fmt.Sprint(b.Rule, b.Key)] = true
			}
		}
		for _, q.Limit = range []int{1 + len(want)/3, 1000, 100_000} {
			got := pages(t, m, now, q, nil)
			seen := map[string]bool{}
			for i, b := range got {
				id := fmt.Sprint(b.Rule, b.Key)
				if !want[id] || seen[id] {
					t.Fatalf("%+v: %s is there, or is there twice", q, id)
				}
				seen[id] = true
				if i > 0 && b.Since.After(got[i-1].Since) {
					t.Fatalf("%+v: a ban of %v stands behind one of %v", q, b.Since, got[i-1].Since)
				}
			}
			first, err := m.page(now, q)
			if len(got) != len(want) || err != nil || first.Total != len(want) {
				t.Errorf("%+v: %d bans on all pages, total %d, %v; want %d", q, len(got), first.Total, err, len(want))
			}
		}
	}
}

// TestConcurrentBanPagesWhileBansChange reads pages while other bans begin and end: each that
// holds throughout is on one page.
func TestConcurrentBanPagesWhileBansChange(t *testing.T) {
	m := pageMemory(t)
	start := at(1_700_000_000_000)
	ban := func(key string, since time.Time) {
		if err := m.Ban(context.Background(), ratelimit.BanRecord{Rule: "one", Key: []string{key}, Since: since, Until: since.Add(time.Hour)}); err != nil {
			t.Error(err)
		}
	}
	const held = 2000
	for i := range held {
		ban(fmt.Sprint("held", i), start.Add(time.Duration(i%100)*time.Millisecond))
		ban(fmt.Sprint("goes", i), start.Add(time.Duration(i%100)*time.Millisecond))
	}
	var stop atomic.Bool
	var others sync.WaitGroup
	others.Go(func() {
		for i := 0; !stop.Load(); i++ {
			key := fmt.Sprintf("a rather long key that comes and goes %d", i%500)
			ban(key, start.Add(time.Duration(i%200)*time.Millisecond))
			if _, err := m.Unban(context.Background(), "one", []byte(key)); err != nil {
				t.Error(err)
			}
		}
	})
	gone := 0
	seen := map[string]int{}
	for _, b := range pages(t, m, start.Add(time.Second), bans.Query{Limit: 100}, func() {
		for range 50 {
			if gone < held {
				m.Unban(context.Background(), "one", []byte(fmt.Sprint("goes", gone)))
				gone++
			}
		}
		ban(fmt.Sprint("new", gone), start.Add(500*time.Millisecond))
	}) {
		seen[b.Key[0]]++
	}
	stop.Store(true)
	others.Wait()
	for i := range held {
		if n := seen[fmt.Sprint("held", i)]; n != 1 {
			t.Fatalf("ban %d is on %d pages", i, n)
		}
	}
	for key, n := range seen {
		if strings.HasPrefix(key, "new") || n > 1 && !strings.HasPrefix(key, "a rather") {
			t.Errorf("%s is on %d pages", key, n)
		}
	}
}

// TestBanPageErrors asks for an unknown rule, and with invalid cursors.
func TestBanPageErrors(t *testing.T) {
	m := pageMemory(t)
	if _, err := m.page(at(1), bans.Query{Rule: "ones", Limit: 1}); err == nil || !strings.Contains(err.Error(), `did you mean "one"?`) {
		t.Errorf("an unknown rule: %v", err)
	}
	for _, c := range []string{"0", "x", strings.Repeat("A", 15), strings.Repeat("A", 17), "!!!!!!!!!!!!!!!!"} {
		if _, err := m.page(at(1), bans.Query{Limit: 1, Cursor: c}); err == nil || !strings.Contains(err.Error(), "cursor") {
			t.Errorf("cursor %q: %v", c, err)
		}
	}
}

// BenchmarkBanPage reads the first page of a million bans.
func BenchmarkBanPage(b *testing.B) {
	m := pageMemory(b)
	start := at(1_700_000_000_000)
	for i := range 980_000 {
		since := start.Add(time.Duration(i%1_000_000) * time.Microsecond)
		must.Do(b, m.Ban(context.Background(), ratelimit.BanRecord{Rule: "one", Key: []string{fmt.Sprint("u", i)}, Since: since, Until: since.Add(time.Hour), Source: "rule"}))
	}
	for _, text := range []string{"", "u1234"} {
		b.Run("text="+text, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				must.Get(m.page(start.Add(time.Minute), bans.Query{Limit: 1000, Text: text}))(b)
			}
		})
	}
}
