package rules

import (
	"net/netip"
	"strconv"

	"github.com/goccy/go-yaml/ast"

	"github.com/lately-go/lately/hotkey"
	"github.com/lately-go/lately/match"
	"github.com/lately-go/lately/ratelimit"
)

// A draft is a file that was read but not compiled: keys are still names, since
// the section client may come after the rules that depend on it.
type draft struct {
	fold     match.Fold
	counters []counterDraft
	limits   []limitDraft
	bans     []limitDraft
	hot      []hotDraft
	allow    []netip.Prefix
}

const sectionList = "a list of rules, each beginning with \"- name:\""

var fileEntries = []entry[draft]{
	{"version", `write "version: 1" at the top`, func(r *reader, _ *draft, n ast.Node) { r.readVersion(n) }},
	{"client", "", func(r *reader, d *draft, n ast.Node) {
		if !isNull(n) {
			readMapping(r, n, "client", &d.fold, clientEntries)
		}
	}},
	{"counters", "", func(r *reader, d *draft, n ast.Node) { r.readCounters(d, n) }},
	{"limits", "", func(r *reader, d *draft, n ast.Node) {
		for _, one := range r.items(n, "limits", sectionList) {
			d.limits = append(d.limits, r.readLimit(one))
		}
		r.checkNumber(n, d)
	}},
	{"bans", "", func(r *reader, d *draft, n ast.Node) {
		for _, one := range r.items(n, "bans", sectionList) {
			d.bans = append(d.bans, r.readBanRule(one))
		}
		r.checkNumber(n, d)
	}},
	{"hot", "", func(r *reader, d *draft, n ast.Node) {
		for _, one := range r.items(n, "hot", sectionList) {
			d.hot = append(d.hot, r.readHot(one))
		}
	}},
	{"allow", "", func(r *reader, d *draft, n ast.Node) { r.readAllow(d, n) }},
}

var clientEntries = []entry[match.Fold]{
	{"ipv4", "", func(r *reader, f *match.Fold, n ast.Node) { f.IPv4 = r.readBits(n, "ipv4", 32) }},
	{"ipv6", "", func(r *reader, f *match.Fold, n ast.Node) { f.IPv6 = r.readBits(n, "ipv6", 128) }},
}

// readFile reads the whole file into d.
func (r *reader) readFile(n ast.Node, d *draft) { readMapping(r, n, "the file", d, fileEntries) }

func (r *reader) readVersion(n ast.Node) {
	if v, ok := r.scalar(n, "version", "1"); ok && v != "1" {
		r.fail(n, "version is %q; allowed is 1", clip(v))
	}
}

// readBits reads a prefix length. Zero, which a Fold takes for its default, is
// refused: whoever writes it means that all clients are one.
func (r *reader) readBits(n ast.Node, what string, most int) int {
	s, ok := r.scalar(n, what, "a prefix length")
	if !ok {
		return 0
	}
	bits, problem := parseCount(s)
	if problem != "" || bits < 1 || bits > uint64(most) {
		r.fail(n, "%s is %q; allowed is a prefix length from 1 to %d", what, clip(s), most)
		return 0
	}
	return int(bits)
}

func (r *reader) readAllow(d *draft, n ast.Node) {
	if list, ok := n.(*ast.SequenceNode); isNull(n) || ok && len(list.Values) == 0 {
		return
	}
	for _, one := range r.scalars(n, "allow", "an address, a prefix, or a list of them") {
		if p, ok := r.prefix(one, "allow"); ok {
			d.allow = append(d.allow, p)
		}
	}
}

// prefix parses one address or prefix of what.
func (r *reader) prefix(t text, what string) (netip.Prefix, bool) {
	p, err := match.ParsePrefix(t.text)
	if err != nil {
		r.fail(t.node, "in %s, %v", what, err)
		return p, false
	}
	if p.Bits() == 0 {
		r.warn(t.node, "%s holds every %s address", what, family(p.Addr()))
	}
	return p, true
}

func family(a netip.Addr) string {
	if a.Is4() {
		return "IPv4"
	}
	return "IPv6"
}

func (r *reader) checkNumber(n ast.Node, d *draft) {
	if have := len(d.limits) + len(d.bans); have > ratelimit.MaxRules {
		r.fail(n, "the file has %d limits and bans; allowed is at most %d", have, ratelimit.MaxRules)
	}
}

func isNull(n ast.Node) bool {
	_, ok := n.(*ast.NullNode)
	return ok
}

// readBool reads true or false.
func (r *reader) readBool(n ast.Node, what string) bool {
	s, ok := r.scalar(n, what, "true or false")
	if !ok {
		return false
	}
	v, err := strconv.ParseBool(s)
	if err != nil || len(s) < len("true") {
		r.fail(n, "%s is %q; allowed is true or false", what, clip(s))
	}
	return v
}

// compile makes the File of d. What the packages below refuse is a mistake that
// the reader should have found, so it has no better position than the start.
func (r *reader) compile(d *draft) *File {
	f := &File{Name: r.file, Fold: d.fold, Allow: d.allow}
	var err error
	key := func(names []string) match.Key {
		k, e := match.NewKey(d.fold, names...)
		if e != nil && err == nil {
			err = e
		}
		return k
	}
	var rules []ratelimit.Rule
	for _, section := range [][]limitDraft{d.limits, d.bans} {
		for i := range section {
			section[i].rule.Key = key(section[i].key)
			rules = append(rules, section[i].rule)
		}
	}
	var hot []hotkey.Rule
	for i := range d.hot {
		d.hot[i].rule.Key = key(d.hot[i].key)
		hot = append(hot, d.hot[i].rule)
	}
	for i := range d.counters {
		c := &d.counters[i]
		c.counter.Key = key(c.key)
		f.Counters = append(f.Counters, c.counter)
	}
	if err == nil {
		f.Limits, err = ratelimit.NewSet(ratelimit.SetConfig{Allow: d.allow}, rules...)
	}
	if err == nil {
		f.Hot, err = hotkey.NewSet(hot...)
	}
	if err != nil {
		r.failAt(1, 1, "%v", err)
	}
	return f
}
