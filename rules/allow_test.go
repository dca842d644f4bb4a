package rules

import (
	"context"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lately-go/lately/internal/event/address"
	"github.com/lately-go/lately/internal/test/must"
)

// allowFolder returns a folder with these files, by name.
func allowFolder(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		must.Do(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
	}
	return dir
}

// Clients and files are one allow list. Files are found beside the rules file, whatever the
// working directory is.
func TestAllowFiles(t *testing.T) {
	dir := allowFolder(t, map[string]string{
		"rules.yaml": "version: 1\nallow:\n  clients: 10.0.0.0/8\n  files: [cdn.txt, monitors.txt]\n",
		"cdn.txt":    "\ufeff# IPv4\r\n192.0.2.0/24\r\n  203.0.113.7\t# one address\n\n2001:db8::/32",
	})
	monitors := filepath.Join(t.TempDir(), "monitors.txt")
	must.Do(t, os.WriteFile(monitors, []byte("198.51.100.1\n"), 0o600))
	must.Do(t, os.Symlink(monitors, filepath.Join(dir, "monitors.txt")))
	f := must.Get(Load(filepath.Join(dir, "rules.yaml")))(t)
	allow := address.NewSet(f.Allow.prefixes()...)
	for client, want := range map[string]bool{
		"10.1.2.3": true, "192.0.2.9": true, "203.0.113.7": true, "203.0.113.8": false, "2001:db8::1": true, "198.51.100.1": true, "198.51.100.2": false,
	} {
		if got := allow.Contains([]byte(client)); got != want {
			t.Errorf("%s: %t, want %t", client, got, want)
		}
	}
	want := "allow: 10.0.0.0/8, every client in cdn.txt (3 prefixes) and every client in monitors.txt (1 prefix) are never limited and never banned."
	if got := f.Sentences(); len(got) != 1 || got[0] != want {
		t.Errorf("%q, want %q", got, want)
	}

	// A draft has the files that the rules in force have, and no others.
	draft := must.Get(f.Draft("draft", []byte("version: 1\nallow: {files: [cdn.txt, /etc/passwd]}\n")))(t)
	if allow := address.NewSet(draft.Allow.prefixes()...); !allow.Contains([]byte("192.0.2.9")) || allow.Contains([]byte("198.51.100.1")) {
		t.Error("the draft must allow what cdn.txt has, and nothing else")
	}
	if got, want := draft.Warnings.Error(), `draft:2:26: files: "/etc/passwd": not read: the rules in force do not name it, and only a rules file on disk reads files`; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

// Mistakes in a file have its path and the line, and reject the rules.
func TestAllowFileMistakes(t *testing.T) {
	for _, c := range []struct{ name, text, want string }{
		{"host bits", "192.0.2.0/24\n\n  10.0.0.1/8 # office\n", `DIR/list:3:3: "10.0.0.1/8": bits beyond the prefix length: did you mean 10.0.0.0/8?`},
		{"a name and a range", "cdn.example.com\n192.0.2.1-192.0.2.9\n", `DIR/list:1:1: "cdn.example.com": must be an address such as 192.0.2.1 or a prefix such as 192.0.2.0/24
DIR/list:2:1: "192.0.2.1-192.0.2.9": must be an address such as 192.0.2.1 or a prefix such as 192.0.2.0/24`},
		{"everybody", "::/0\n0.0.0.0/0\n", `DIR/list:1:1: ::/0: every address of its kind: must be a smaller network
DIR/list:2:1: 0.0.0.0/0: every address of its kind: must be a smaller network`},
		{"empty", "", `DIR/list:1:1: no address: must be an address or a prefix in each line`},
		{"only a comment", "# moved\n", `DIR/list:1:1: no address: must be an address or a prefix in each line`},
		{"JSON", "\n{\"prefixes\": []}\n", `DIR/list:1:1: JSON: must be an address or a prefix in each line; docs/rules.md has a command that makes one of the other`},
		{"bytes", "\xff\x00\n", `DIR/list:1:1: "\xff\x00": must be an address such as 192.0.2.1 or a prefix such as 192.0.2.0/24`},
		{"a long line", strings.Repeat("x", 1000), `DIR/list:1:1: "` + strings.Repeat("x", 80) + `…": must be an address such as 192.0.2.1 or a prefix such as 192.0.2.0/24`},
	} {
		dir := allowFolder(t, map[string]string{"rules.yaml": "version: 1\nallow: {files: list}\n", "list": c.text})
		_, err := Load(filepath.Join(dir, "rules.yaml"))
		if got := strings.ReplaceAll(fmt.Sprint(err), dir, "DIR"); got != c.want {
			t.Errorf("%s:\n%s\nwant\n%s", c.name, got, c.want)
		}
	}
	dir := allowFolder(t, map[string]string{
		"rules.yaml": "version: 1\nallow: {files: [none, list, none, big], hosts: x}\n",
		"list":       strings.Repeat("x\n", 100),
		"big":        strings.Repeat("#", maxAllowFile+1),
	})
	_, err := Load(filepath.Join(dir, "rules.yaml"))
	got := strings.ReplaceAll(fmt.Sprint(err), dir, "DIR")
	for _, want := range []string{
		"DIR/rules.yaml:2:17: files: stat DIR/none: no such file", `DIR/rules.yaml:2:29: files: "none" twice`, "files: DIR/big: too long: must be at most 16777216 bytes",
		`allow: unknown key "hosts": must be one of clients, files`, "DIR/list:10:1: too many mistakes: what follows was not read",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("%q is missing in\n%s", want, got)
		}
	}
	if strings.Contains(got, "DIR/list:11:") {
		t.Errorf("more than %d mistakes in one file", maxLineMistakes)
	}
}

// A change of a file is a change of the rules. A version with mistakes is an error once,
// and the next good one is found again.
func TestConcurrentAllowFileChanges(t *testing.T) {
	dir := allowFolder(t, map[string]string{"rules.yaml": "version: 1\nallow: {files: a}\n", "a": "192.0.2.1\n", "b": "192.0.2.2\n"})
	file := func(name string) string { return filepath.Join(dir, name) }
	write := func(name, text string) {
		t.Helper()
		must.Do(t, os.WriteFile(file(name), []byte(text), 0o600))
	}
	synctest.Test(t, func(t *testing.T) {
		f := must.Get(Load(file("rules.yaml")))(t)
		ctx, stop := context.WithCancel(t.Context())
		var mu sync.Mutex
		var seen []string
		see := func(what string) {
			mu.Lock()
			defer mu.Unlock()
			seen = append(seen, what)
		}
		go func() {
			for next, err := range f.Changes(ctx, time.Second) {
				if err != nil {
					see(strings.ReplaceAll(err.Error(), dir+"/", ""))
					continue
				}
				see(fmt.Sprint(next.Allow.prefixes()))
			}
		}()
		var want []string
		for i, step := range []struct {
			do   func()
			want string
		}{
			{func() {}, ""},
			{func() { write("b", "192.0.2.3\n") }, ""}, // no rule names it
			{func() { write("a", "192.0.2.1\n192.0.2.4\n") }, "[192.0.2.1/32 192.0.2.4/32]"},
			{func() { write("a", "192.0.2.\n") }, `a:1:1: "192.0.2.": must be an address such as 192.0.2.1 or a prefix such as 192.0.2.0/24`},
			{func() {}, ""},
			{func() { os.Remove(file("a")) }, "rules.yaml:2:16: files: stat a: no such file or directory"},
			{func() { write("a", "192.0.2.5\n") }, "[192.0.2.5/32]"},
			{func() { write("rules.yaml", "version: 1\nallow: {files: [a, b, c]}\n") }, "rules.yaml:2:23: files: stat c: no such file or directory"},
			{func() { write("c", "192.0.2.7\n") }, "[192.0.2.5/32 192.0.2.3/32 192.0.2.7/32]"},
			{func() { write("b", "192.0.2.6\n") }, "[192.0.2.5/32 192.0.2.6/32 192.0.2.7/32]"},
			{func() { write("rules.yaml", "version: 1\nallow: {files: b}\n") }, "[192.0.2.6/32]"},
			{func() { write("a", "192.0.2.8\n") }, ""},
		} {
			step.do()
			time.Sleep(3 * time.Second)
			synctest.Wait()
			if step.want != "" {
				want = append(want, step.want)
			}
			mu.Lock()
			if !reflect.DeepEqual(seen, want) {
				t.Fatalf("after step %d:\n%q\nwant\n%q", i, seen, want)
			}
			mu.Unlock()
		}
		stop()
		synctest.Wait()
	})
}

// FuzzAllowFile checks that a file is either addresses or mistakes with lines, and that each
// address stands in it.
func FuzzAllowFile(f *testing.F) {
	for _, s := range []string{"192.0.2.0/24\n# x\n2001:db8::/32 # y\r\n::ffff:192.0.2.1", "{", "\ufeff", "0.0.0.0/0", "x\n\n y", "é 192.0.2.1"} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		list, errs := parsePrefixes("list", data)
		if len(list)+len(errs) == 0 || len(errs) > maxLineMistakes+1 {
			t.Fatalf("%d prefixes and %d mistakes", len(list), len(errs))
		}
		lines := strings.Count(string(data), "\n") + 1
		for _, e := range errs {
			if e.Line < 1 || e.Line > lines || e.Column < 1 {
				t.Errorf("%v: there are %d lines", e, lines)
			}
		}
		for _, p := range list {
			if !p.IsValid() || p != p.Masked() || p.Bits() == 0 {
				t.Errorf("%v", p)
			}
		}
	})
}

// BenchmarkAllowFile reads 100,000 prefixes, and looks whether the file has changed.
func BenchmarkAllowFile(b *testing.B) {
	var text strings.Builder
	for i := range 100_000 {
		fmt.Fprintln(&text, netip.PrefixFrom(netip.AddrFrom4([4]byte{byte(i>>15) + 1, byte(i >> 7), byte(i << 1), 0}), 24))
	}
	path := filepath.Join(b.TempDir(), "list")
	must.Do(b, os.WriteFile(path, []byte(text.String()), 0o600))
	b.Run("parse", func(b *testing.B) {
		for b.Loop() {
			if _, errs := parsePrefixes(path, []byte(text.String())); errs != nil {
				b.Fatal(errs)
			}
		}
	})
	b.Run("look", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			version{path: path}.current()
		}
	})
}
