// Package middleware has what latelyhttp and latelygrpc have in common: it fills in the
// events of requests, judges them under the rules that the limiter has now, and settles
// their reservations.
package middleware

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/lately-go/lately/internal/event/intake"
	"github.com/lately-go/lately/internal/http/ratelimitheader"
	"github.com/lately-go/lately/internal/rule/hashedplans"
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

// NewFields returns the fields of these names that find knows, and the first error
// about one that it does not know.
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
	key     atomic.Pointer[[32]byte] // of digests; nil until there are hashed fields
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

// Init sets the limiter, whether the names of rules are hidden from clients, the key for
// digests of hashed fields (zero means the key of the store, or else of the process), and
// the function that finds fields. It returns an error if l is nil, or if hashed fields need
// the key of a store that does not answer.
func (rs *Rules[R]) Init(l *ratelimit.Limiter, hide bool, key [32]byte, find Finder[R]) error {
	if l == nil {
		return errors.New("limiter: nil: must be made with ratelimit.New or ratelimit.NewLimiter")
	}
	rs.limiter, rs.hide, rs.find = l, hide, find
	if key != [32]byte{} {
		rs.key.Store(&key)
	}
	return rs.hash(l.Set())
}

// hash prepares the hashed fields of set: their key, and plans by digests under it.
func (rs *Rules[R]) hash(set *ratelimit.Set) error {
	key, err := rs.hashKey(set)
	if err != nil || key == [32]byte{} {
		return err
	}
	use, err := hashedplans.Rekey(set, key)
	if err == nil {
		use()
	}
	return err
}

// hashKeyTimeout bounds the call of the store for the key of hashed fields, which is made once.
const hashKeyTimeout = 2 * time.Second

// hashKey returns the key for digests of the hashed fields of set. If no store has one, it is the
// key of the process. If the store does not answer, it is also an error.
func (rs *Rules[R]) hashKey(set *ratelimit.Set) (key [32]byte, err error) {
	if known := rs.key.Load(); known != nil {
		return *known, nil
	}
	if !slices.ContainsFunc(set.Internal().Sources(), func(s match.Source) bool { return s.Hash }) {
		return key, nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), hashKeyTimeout)
	defer cancel()
	key, held, err := rs.limiter.Internal().HashKey(ctx)
	if err != nil {
		return intake.ProcessKey(), fmt.Errorf("Config.HashKey: zero, and the store does not answer with its own: %w", err)
	}
	if !held {
		key = intake.ProcessKey()
	}
	rs.key.Store(&key)
	return key, nil
}

// Check returns an error about a field that set's rules use and requests do not have, or about the key of hashed fields.
func (rs *Rules[R]) Check(set *ratelimit.Set) error {
	if err := rs.hash(set); err != nil {
		return err
	}
	_, err := NewFields(set.Internal().Fields(), set.Internal().Sources(), rs.find)
	return err
}

// Plan returns the plan of the rules that the limiter has now.
func (rs *Rules[R]) Plan() *Plan[R] {
	set, p := rs.limiter.Set(), rs.plan.Load()
	if p == nil || p.Set != set {
		key, _ := rs.hashKey(set) // Check has returned the error
		p = &Plan[R]{Set: set, Answers: set.Internal().CountsAnswers(), Policies: ratelimitheader.New(set, rs.hide), intake: intake.New(set.Internal().Sources(), key)}
		p.Fields, _ = NewFields(set.Internal().Fields(), set.Internal().Sources(), rs.find)
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
