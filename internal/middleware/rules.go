// Package middleware has what latelyhttp and latelygrpc have in common: it fills in the
// events of requests, judges them under the rules that the limiter has now, and settles
// their reservations.
package middleware

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/lately-go/lately/internal/intake"
	"github.com/lately-go/lately/internal/ratelimitheader"
	"github.com/lately-go/lately/match"
	"github.com/lately-go/lately/ratelimit"
)

// A Field fills in one field of the event of an R. Exactly one of its functions is set.
type Field[R any] struct {
	Text  func(R) string // returns a part of the request
	Bytes func(R) []byte // returns memory that is valid until the event was judged

	name string
}

// Fields are the fields that rules use.
type Fields[R any] []Field[R]

// A Finder finds what fills in a field that may be declared: if it is not, the source has
// only its name.
type Finder[R any] func(match.Source) (Field[R], error)

// NewFields returns the fields of these names that find has, and the first error about
// one that it does not have.
func NewFields[R any](names []string, declared []match.Source, find Finder[R]) (fields Fields[R], err error) {
	for _, name := range names {
		source := match.Source{Field: name}
		if i := slices.IndexFunc(declared, func(s match.Source) bool { return s.Field == name }); i >= 0 {
			source = declared[i]
		}
		f, e := find(source)
		if e == nil {
			f.name = name
			fields = append(fields, f)
		} else if err == nil {
			err = e
		}
	}
	return fields, err
}

// Fill gives e the fields of r. e holds views of r.
func (fields Fields[R]) Fill(e *match.Event, r R) {
	for i := range fields {
		if f := &fields[i]; f.Bytes != nil {
			e.SetNamed(f.name, f.Bytes(r))
		} else {
			e.SetNamedString(f.name, f.Text(r))
		}
	}
}

// CheckFields returns an error about the field Config.Fields.
func CheckFields[R any](own map[string]func(R) string) error {
	for name, f := range own {
		if name == "" || f == nil {
			return fmt.Errorf("Config.Fields: %q: must have a name and a function", name)
		}
	}
	return nil
}

// Rules are the rules of a limiter, which may change at any time, with what the events
// of R need for them.
type Rules[R any] struct {
	limiter *ratelimit.Limiter
	find    Finder[R]
	hide    bool
	key     [32]byte // of digests
	plan    atomic.Pointer[Plan[R]]
}

// A Plan is what Rules derives from one Set. Fields that the request does not have stay
// absent.
type Plan[R any] struct {
	Set      *ratelimit.Set
	Answers  bool // rules count answers
	Fields   Fields[R]
	Policies ratelimitheader.Policies

	intake *intake.Intake
}

// Fill gives the event of r the fields of source.
func (p *Plan[R]) Fill(r *Request, source R) {
	p.Fields.Fill(&r.Event, source)
	p.intake.Event(&r.Event, &r.digests)
}

// Init sets the limiter, whether the names of rules are hidden from clients, the key of the
// digests of hashed fields, where zero means that of the process, and the function that
// finds fields. It returns an error if l is nil.
func (rs *Rules[R]) Init(l *ratelimit.Limiter, hide bool, key [32]byte, find Finder[R]) error {
	if l == nil {
		return errors.New("limiter: nil: must be made with ratelimit.New or ratelimit.NewLimiter")
	}
	if key == [32]byte{} {
		key = intake.ProcessKey()
	}
	rs.limiter, rs.hide, rs.key, rs.find = l, hide, key, find
	return nil
}

// Check returns an error about a field that set's rules use and requests do not have.
func (rs *Rules[R]) Check(set *ratelimit.Set) error {
	_, err := NewFields(set.Fields(), set.Sources(), rs.find)
	return err
}

// Plan returns the plan of the rules that the limiter has now.
func (rs *Rules[R]) Plan() *Plan[R] {
	set, p := rs.limiter.Set(), rs.plan.Load()
	if p == nil || p.Set != set {
		p = &Plan[R]{Set: set, Answers: set.CountsAnswers(), Policies: ratelimitheader.New(set, rs.hide), intake: intake.New(set.Sources(), rs.key)}
		p.Fields, _ = NewFields(set.Fields(), set.Sources(), rs.find)
		rs.plan.Store(p)
	}
	return p
}

// AppendHost appends host in lower case, without port and final dots: a client can
// write it in any of these ways and gets the same answer.
func AppendHost(dst []byte, host string) []byte {
	if inside, ok := strings.CutPrefix(host, "["); ok {
		host, _, _ = strings.Cut(inside, "]")
	} else {
		host, _, _ = strings.Cut(host, ":")
	}
	for _, c := range []byte(strings.TrimRight(host, ".")) {
		if 'A' <= c && c <= 'Z' {
			c |= 0x20
		}
		dst = append(dst, c)
	}
	return dst
}
