package engine

import (
	"slices"
	"sync/atomic"

	"github.com/lately-go/lately/api"
	"github.com/lately-go/lately/internal/event/intake"
	"github.com/lately-go/lately/internal/rule/hashedplans"
	"github.com/lately-go/lately/internal/server/apierror"
	"github.com/lately-go/lately/internal/store/secret"
	"github.com/lately-go/lately/match"
	"github.com/lately-go/lately/ratelimit"
)

// A hashing digests the values of the fields that a rules file declares as hashed, and fills in shared ones.
type hashing struct {
	declared []match.Source
	current  atomic.Pointer[keyedIntake]
}

// A keyedIntake is an intake and the key that it was made with.
type keyedIntake struct {
	key    *secret.Key
	intake *intake.Intake
}

// newHashing returns what digests the fields that are declared with Hash or Share, or nil if there are none.
func newHashing(declared []match.Source) *hashing {
	if !slices.ContainsFunc(declared, func(s match.Source) bool { return s.Hash || s.Share }) {
		return nil
	}
	return &hashing{declared: declared}
}

// intake returns the intake under the current secret, or nil.
func (h *hashing) intake(s *secret.Secret) *intake.Intake {
	if h == nil {
		return nil
	}
	key, now := s.Key(secret.FieldLabel), h.current.Load()
	if now == nil || now.key != key {
		now = &keyedIntake{key, intake.New(h.declared, *key)}
		h.current.Store(now)
	}
	return now.intake
}

// SetSecret makes v the secret, from which the keys of ids and of hashed fields are derived. It reads files of plans
// by hashed fields again; the error is about such a file, whose plans are not found then.
func (e *Engine) SetSecret(v secret.Value) error {
	e.mu.Lock() // no reload is under way
	defer e.mu.Unlock()
	next := secret.New()
	next.Set(v)
	use, err := hashedplans.Rekey(e.limiter.Set(), *next.Key(secret.FieldLabel))
	e.secret.Set(v)
	if err == nil {
		use()
	}
	return err
}

// hashPlans makes the plans of set by hashed fields digests under the current secret.
func (e *Engine) hashPlans(set *ratelimit.Set) error {
	use, err := hashedplans.Rekey(set, *e.secret.Key(secret.FieldLabel))
	if err == nil {
		use()
	}
	return err
}

func (e *Engine) intake() *intake.Intake { return e.rules.Load().hashing.intake(e.secret) }

// Receive replaces the values of hashed fields of ev, an event of a log that was just read, by their
// digests, which are valid until the next Receive. It must be called once for each event, before [Session.CheckLogged].
func (s *Session) Receive(ev *match.Event) {
	s.e.intake().Event(ev, &s.digests)
}

// digest replaces the values of hashed fields in a key of k by digests. If the key is listed, a user may have copied it
// from a list: digests stay.
func (e *Engine) digest(k *match.Key, values []string, listed bool) error {
	in := e.intake()
	if in == nil {
		return nil
	}
	var err error
	if listed {
		err = in.ListedValues(*k, values)
	} else {
		err = in.Values(*k, values)
	}
	if err != nil {
		return apierror.New(api.BadArg, "%v", err)
	}
	return nil
}

// Listed returns a key of a rule, for the log, as lists have it: with digests of hashed fields. key has the values, or is one value
// that stands for all of them. Of a key that is not one of the rule, which has hashed fields, it returns none.
func (e *Engine) Listed(rule string, key []string) []string {
	r, err := e.ruleNamed(rule)
	if err != nil || !e.intake().Hashes(r.Key) {
		return key
	}
	values, err := e.split(nil, &r.Key, key, true)
	if err != nil || len(values) != len(r.Key.Fields()) {
		return nil
	}
	return values
}
