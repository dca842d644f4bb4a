package rules

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"io"
	"net/netip"
	"path/filepath"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/goccy/go-yaml/ast"

	"github.com/lately-go/lately/internal/event/address"
	"github.com/lately-go/lately/internal/event/crawlers"
	"github.com/lately-go/lately/internal/file/fileperm"
	"github.com/lately-go/lately/internal/rule/rulevalue"
	"github.com/lately-go/lately/internal/rule/sentence"
	"github.com/lately-go/lately/internal/rule/yamlfile"
)

// An Allow is the section allow: clients that are never limited, never banned and never
// counted by a limit or ban. The allow list of [File.Limits] has all their addresses.
type Allow struct {
	Clients []netip.Prefix // in the rules file itself
	Files   []AllowFile    // in the order of the rules file

	// Crawlers are operators of crawlers, such as google. Only the server verifies and allows
	// crawlers; in a program and in a replay, they are ordinary clients.
	Crawlers []string
}

// An AllowFile is a file of addresses and prefixes.
type AllowFile struct {
	Name     string         // as in the rules file
	Prefixes []netip.Prefix // in the order of the file

	version
}

// A version is which contents of a file were read.
type version struct {
	path string
	most int64             // the size of the largest such file
	sum  [sha256.Size]byte // of the contents, or zero if they cannot be read
}

const (
	maxAllowFile     = 16 << 20 // bytes
	maxAllowFiles    = 64
	maxAllowPrefixes = 1 << 20 // in all files
)

var allowKeys = []string{"clients", "files", "crawlers"}

// prefixes returns the prefixes of a and its files.
func (a *Allow) prefixes() []netip.Prefix {
	all := slices.Clone(a.Clients)
	for i := range a.Files {
		all = append(all, a.Files[i].Prefixes...)
	}
	return all
}

// subjects returns what a allows, for a sentence.
func (a *Allow) subjects() []string {
	all := sentence.Prefixes(a.Clients)
	for i := range a.Files {
		f := &a.Files[i]
		all = append(all, fmt.Sprintf("every client in %s (%s)", f.Name, prefixCount(len(f.Prefixes))))
	}
	return all
}

// crawlers returns which crawlers a allows, or "" if there are none.
func (a *Allow) crawlers() string {
	if len(a.Crawlers) == 0 {
		return ""
	}
	return fmt.Sprintf("allow: when lately serve or follow has refused a client, it asks DNS whether that is a crawler of %s, and then allows it for 24h. A program with the library, and a replay, treat crawlers as other clients.", rulevalue.Join(a.Crawlers, "or"))
}

// add adds the clients and the files of another file's section, of which both may name the same.
func (a *Allow) add(b Allow) {
	a.Clients = append(a.Clients, b.Clients...)
	for _, name := range b.Crawlers {
		if !slices.Contains(a.Crawlers, name) {
			a.Crawlers = append(a.Crawlers, name)
		}
	}
	for _, f := range b.Files {
		if !slices.ContainsFunc(a.Files, func(g AllowFile) bool { return g.path == f.path && g.Name == f.Name }) {
			a.Files = append(a.Files, f)
		}
	}
}

func prefixCount(n int) string {
	if n == 1 {
		return "1 prefix"
	}
	return fmt.Sprintf("%d prefixes", n)
}

// readAllow reads the section allow: a mapping, or the clients alone.
func (r *reader) readAllow(n ast.Node) (a Allow) {
	switch n := n.(type) {
	case nil:
	case *ast.MappingNode, *ast.MappingValueNode:
		m := r.Mapping(n, "allow", allowKeys)
		a.Clients = r.readPrefixes(m["clients"], "clients")
		a.Files = r.readAllowFiles(m["files"])
		a.Crawlers = r.readCrawlers(m["crawlers"])
	case *ast.SequenceNode:
		if len(n.Values) > 0 {
			a.Clients = r.readPrefixes(n, "allow")
		}
	default:
		a.Clients = r.readPrefixes(n, "allow")
	}
	return a
}

// readCrawlers reads the names of operators of crawlers.
func (r *reader) readCrawlers(n ast.Node) (names []string) {
	known := crawlers.Operators()
	for at, i := range yamlfile.Each(&r.Reader, n, "crawlers", yamlfile.OneOf(known...)) {
		if slices.Contains(names, known[i]) {
			r.Fail(at, "crawlers: %q twice: must be given once", known[i])
			continue
		}
		names = append(names, known[i])
	}
	return names
}

// readAllowFiles reads the files that n names.
func (r *reader) readAllowFiles(n ast.Node) (files []AllowFile) {
	if !r.AtMost(n, "files", maxAllowFiles) {
		return nil
	}
	for at, name := range yamlfile.Each(&r.Reader, n, "files", yamlfile.NonEmpty) {
		if slices.ContainsFunc(files, func(f AllowFile) bool { return f.Name == name }) {
			r.Fail(at, "files: %q twice: must be given once", rulevalue.Clip(name))
			continue
		}
		f := r.readAllowFile(at, name)
		if r.prefixes += len(f.Prefixes); r.prefixes > maxAllowPrefixes {
			r.Fail(at, "files: more than %d prefixes in all: must be fewer", maxAllowPrefixes)
			return nil
		}
		files = append(files, f)
	}
	return files
}

// readAllowFile reads the file of that name, or takes it from another version of the rules
// file. It notes which version it has read, also after a mistake.
func (r *reader) readAllowFile(at ast.Node, name string) AllowFile {
	f := AllowFile{Name: name}
	if !r.onDisk {
		for _, known := range r.allowFiles { // several, in folders of several rules files
			if known.Name == name {
				f.path, f.Prefixes = known.path, append(f.Prefixes, known.Prefixes...)
			}
		}
		if f.path != "" {
			return f
		}
		r.Warn(at, "files: %q: not read: the rules in force do not name it, and only a rules file on disk reads files", rulevalue.Clip(name))
		return f
	}
	data := r.readListed(at, "files", name, maxAllowFile, &f.version)
	if data != nil {
		var errs Errors
		f.Prefixes, errs = parsePrefixes(f.path, data)
		r.errs = append(r.errs, errs...)
	}
	return f
}

// readListed reads the file of that name, which the rules file has under key at that place, and notes which version it has
// read, also after a mistake. It returns nil if the file cannot be read.
func (r *reader) readListed(at ast.Node, key, name string, most int64, v *version) []byte {
	v.most, v.path = most, name
	if !filepath.IsAbs(name) {
		v.path = filepath.Join(filepath.Dir(r.file), name)
	}
	data, err := fileperm.ReadFile(v.path, most)
	if err != nil {
		r.Fail(at, "%s: %v", key, err)
	} else {
		v.sum = sha256.Sum256(data)
	}
	r.read = append(r.read, *v)
	return data
}

// current returns the version of v's file that is on disk now.
func (v version) current() version {
	v.sum = [sha256.Size]byte{}
	f, _, err := fileperm.Open(v.path)
	if err != nil {
		return v
	}
	defer f.Close() // read only
	sum := sha256.New()
	if n, err := io.Copy(sum, io.LimitReader(f, v.most+1)); err == nil && n <= v.most {
		sum.Sum(v.sum[:0])
	}
	return v
}

// parsePrefixes parses a file of addresses and prefixes, one in each line. What follows a '#'
// is a comment.
func parsePrefixes(path string, data []byte) (list []netip.Prefix, errs Errors) {
	data = bytes.TrimPrefix(data, []byte("\ufeff"))
	if bytes.HasPrefix(bytes.TrimSpace(data), []byte("{")) {
		return nil, Errors{{path, 1, 1, "JSON: must be an address or a prefix in each line; docs/rules.md has a command that makes one of the other"}}
	}
	errs = eachLine(path, data, func(_ int, line []byte) (column int, err error) {
		text, _, _ := strings.Cut(string(line), "#")
		word := strings.TrimSpace(text)
		if word == "" {
			return 0, nil
		}
		p, err := address.ParsePrefix(rulevalue.Clip(word))
		if err == nil && p.Bits() == 0 {
			err = fmt.Errorf("%s: every address of its kind: must be a smaller network", p)
		}
		if err == nil {
			list = append(list, p)
		}
		return 1 + utf8.RuneCountInString(text[:strings.Index(text, word)]), err
	})
	if len(list)+len(errs) == 0 { // as after a download that failed
		errs = Errors{{path, 1, 1, "no address: must be an address or a prefix in each line"}}
	}
	return list, errs
}

// maxLineMistakes is how many mistakes are reported for one file of the allow list or of plans.
const maxLineMistakes = 10

// eachLine calls read with each line of a file and the place where it begins. The errors of read are about the line from a
// column on. It returns the first ones.
func eachLine(path string, data []byte, read func(at int, line []byte) (column int, err error)) (errs Errors) {
	for at, number := 0, 1; at < len(data); number++ {
		line, _, _ := bytes.Cut(data[at:], []byte("\n"))
		if column, err := read(at, line); err != nil {
			errs = append(errs, &Error{path, number, column, err.Error()})
		}
		if len(errs) == maxLineMistakes {
			return append(errs, &Error{path, number, 1, "too many mistakes: what follows was not read"})
		}
		at += len(line) + 1
	}
	return errs
}
