package deptest

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/lately-go/lately/internal/test/must"
)

// magics are the first bytes of programs and object files.
var magics = map[string]string{
	"\x7fELF": "a program or object file of ELF", "!<arch>\n": "an archive of object files", "!<thin>\n": "an archive of object files",
	"MZ\x90\x00":       "a program for Windows",
	"\xfe\xed\xfa\xce": "a program or object file of Mach-O", "\xce\xfa\xed\xfe": "a program or object file of Mach-O",
	"\xfe\xed\xfa\xcf": "a program or object file of Mach-O", "\xcf\xfa\xed\xfe": "a program or object file of Mach-O",
	"\xca\xfe\xba\xbe": "a program of Mach-O, or a class of Java",
}

// strays returns a sentence for each file that somebody added by mistake: what a compiler has
// written, wherever it is, and other binary files outside docs/pictures and the testdata folders.
func strays(fsys fs.FS, names []string) (wrong []string, err error) {
	for _, name := range names {
		begin, err := beginning(fsys, name)
		if errors.Is(err, fs.ErrNotExist) { // deleted, and not committed yet
			continue
		}
		if err != nil {
			return nil, err
		}
		what := ""
		for magic, is := range magics {
			if bytes.HasPrefix(begin, []byte(magic)) {
				what = is
			}
		}
		if what == "" && bytes.IndexByte(begin, 0) >= 0 && !strings.HasPrefix(name, "docs/pictures/") && !strings.Contains("/"+name, "/testdata/") {
			what = "binary, outside docs/pictures and testdata"
		}
		if what != "" {
			wrong = append(wrong, fmt.Sprintf("%s: %s: must not be in git", name, what))
		}
	}
	return wrong, nil
}

// beginning returns the first 8 KiB of a file.
func beginning(fsys fs.FS, name string) ([]byte, error) {
	f, err := fsys.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(io.LimitReader(f, 8<<10))
}

func TestNoStrayFiles(t *testing.T) {
	list := exec.Command("git", "ls-files", "-z")
	list.Dir = root
	out, err := list.Output()
	if err != nil {
		t.Skip("SKIP the files in git: this is no checkout:", err)
	}
	names := strings.Split(strings.TrimSuffix(string(out), "\x00"), "\x00")
	if !slices.Contains(names, "internal/test/deptest/doc.go") {
		t.Fatalf("git lists %d files, but not the one beside this test", len(names))
	}
	wrong := must.Get(strays(os.DirFS(root), names))(t)
	for _, sentence := range wrong {
		t.Error(sentence)
	}
}

func TestPlantedStrayFilesAreFound(t *testing.T) {
	fsys := fstest.MapFS{}
	for name, text := range map[string]string{
		"a.go": "package a\n", "docs/pictures/a.png": "\x89PNG\x00", "a/testdata/b": "\x00", "testdata/c": "\x00", "empty": "",
		"lately": "\x7fELF\x02", "a/testdata/a.o": "\x7fELF\x02", "docs/pictures/a.a": "!<arch>\n", "x.exe": "MZ\x90\x00", "mac": "\xcf\xfa\xed\xfe",
		"a.png": "\x89PNG\x00", "far": strings.Repeat("x", 8<<10-1) + "\x00", "farther": strings.Repeat("x", 8<<10) + "\x00", "mytestdata/d": "\x00",
	} {
		fsys[name] = &fstest.MapFile{Data: []byte(text)}
	}
	names := []string{"deleted"}
	for name := range fsys {
		names = append(names, name)
	}
	wrong := must.Get(strays(fsys, names))(t)
	var found []string
	for _, sentence := range wrong {
		name, _, _ := strings.Cut(sentence, ": ")
		found = append(found, name)
	}
	slices.Sort(found)
	if want := []string{"a.png", "a/testdata/a.o", "docs/pictures/a.a", "far", "lately", "mac", "mytestdata/d", "x.exe"}; !slices.Equal(found, want) {
		t.Errorf("found %q, want %q", found, want)
	}
}
