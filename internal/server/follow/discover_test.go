package follow

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/lately-go/lately/internal/test/must"
)

// paths returns the logs that r follows.
func (r *testReader) paths() (paths []string) {
	for _, l := range r.Stats() {
		paths = append(paths, filepath.Base(l.File))
	}
	slices.Sort(paths)
	return paths
}

// A deleted log of a directory is removed a minute later, unless a rotated file of it is left, which would be taken for a
// separate log and counted again.
func TestDeletedLogs(t *testing.T) {
	dir := t.TempDir()
	r := newReader(t, Config{}, dir)
	r.Follower.config.Logs[0].Path = dir
	for _, name := range []string{"a.log", "b.log", "c.log"} {
		write(t, filepath.Join(dir, name), name)
	}
	r.want("a.log", "b.log", "c.log")
	rename(t, filepath.Join(dir, "b.log"), filepath.Join(dir, "b.log.1"))
	remove(t, filepath.Join(dir, "a.log"))
	r.want()
	if got := r.paths(); len(got) != 3 {
		t.Errorf("after the deletion %q are followed, want all for a minute", got)
	}
	for range 3 {
		r.now = r.now.Add(linger)
		r.want()
	}
	if got, want := r.paths(), []string{"b.log", "c.log"}; !slices.Equal(got, want) {
		t.Errorf("%q are followed, want %q", got, want)
	}
	write(t, filepath.Join(dir, "a.log"), "a again")
	r.want("a again")
	remove(t, filepath.Join(dir, "b.log.1"))
	for range 2 {
		r.want()
	}
	if got, want := r.paths(), []string{"a.log", "c.log"}; !slices.Equal(got, want) {
		t.Errorf("%q are followed, want %q", got, want)
	}
}

// A directory or pattern without a file is a warning, once until there is one.
func TestNoFiles(t *testing.T) {
	dir := t.TempDir()
	var text bytes.Buffer
	r := newReader(t, Config{Log: slog.New(slog.NewTextHandler(&text, nil))}, filepath.Join(dir, "*.log"))
	warnings := func(want int) {
		t.Helper()
		if n := strings.Count(text.String(), "level=WARN msg=\"there is no file in the directory"); n != want {
			t.Errorf("%d warnings, want %d:\n%s", n, want, text.String())
		}
	}
	r.want()
	r.want()
	warnings(1)
	write(t, filepath.Join(dir, "a.log"), "a")
	r.want("a")
	warnings(1)
	remove(t, filepath.Join(dir, "a.log"))
	r.want()
	warnings(2)
	r = newReader(t, Config{Log: slog.New(slog.NewTextHandler(&text, nil))}, filepath.Join(dir, strings.Repeat("a", 300), "*.log"))
	r.want()
	r.want()
	if n := strings.Count(text.String(), "level=ERROR msg=\"the directory cannot be read"); n != 1 {
		t.Errorf("%d errors about a directory that cannot be read, want 1:\n%s", n, text.String())
	}
}

func rename(t *testing.T, from, to string) {
	t.Helper()
	must.Do(t, os.Rename(from, to))
}

func remove(t *testing.T, path string) {
	t.Helper()
	must.Do(t, os.Remove(path))
}

// The rotated files found among many are the same as by comparing each with each.
func TestIsRotated(t *testing.T) {
	paths := map[string]bool{}
	for i := range 30 {
		for _, form := range []string{"app%d.log", "app%d.log.1", "app%d.log-20260301", "app%d-20260301.log", "app%d_2.log", "x%d", "x%d.5", "y.%d", "app%d.log.2.gz", "app%d.log.backup"} {
			paths[filepath.Join("/logs", fmt.Sprintf(form, i))] = true
		}
	}
	for path := range paths {
		want := isCompressed(path)
		for base := range paths {
			_, ok := rotatedName(filepath.Base(base), filepath.Base(path))
			want = want || ok
		}
		if got := isRotated(path, paths); got != want {
			t.Errorf("%s: %v, want %v", path, got, want)
		}
	}
}

// BenchmarkIdleLogs polls a directory of a thousand logs without writers.
func BenchmarkIdleLogs(b *testing.B) {
	dir := b.TempDir()
	for i := range 1000 {
		must.Do(b, os.WriteFile(filepath.Join(dir, fmt.Sprintf("app%d.log", i)), []byte("1700000000,a\n"), 0o600))
	}
	f := must.Get(New(Config{Logs: []Log{{Path: dir}}, Judge: nil}))(b)
	defer f.close()
	now := time.Now()
	f.poll(context.Background(), now)
	now = now.Add(time.Hour)
	for b.Loop() {
		now = now.Add(poll)
		f.poll(context.Background(), now)
	}
	b.ReportMetric(float64(b.Elapsed())/float64(b.N)/float64(poll)*100, "%core")
}
