package engine

import (
	"hash/fnv"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/lately-go/lately/api"
	"github.com/lately-go/lately/internal/event/eventfield"
	"github.com/lately-go/lately/internal/event/keyvalue"
	"github.com/lately-go/lately/internal/event/when"
	"github.com/lately-go/lately/internal/server/apierror"
	"github.com/lately-go/lately/internal/server/keptevents"
	"github.com/lately-go/lately/internal/server/keys"
	"github.com/lately-go/lately/internal/server/reservations"
	"github.com/lately-go/lately/match"
	"github.com/lately-go/lately/ratelimit"
	"github.com/lately-go/lately/rules"
)

// maxDigits is how long a size may be, in decimal.
const maxDigits = 19

// checkAnswer returns an error if ev has no field of an answer, or one with a value that no answer has.
func checkAnswer(ev *match.Event) error {
	status, size, duration := ev.Get(match.Status), ev.Get(match.Size), ev.GetNamed(eventfield.Duration)
	if !eventfield.HasAnswer(ev) {
		return apierror.New(api.BadArg, "status, size, duration: all missing: an outcome must have one of them")
	}
	if len(status) > 0 {
		if n, err := strconv.Atoi(keys.View(status)); err != nil || len(status) != 3 || n < 100 || n > 599 {
			return apierror.New(api.BadArg, "status: %.16q: must be 100 to 599", status)
		}
	}
	if len(size) > 0 {
		if _, err := strconv.ParseUint(keys.View(size), 10, 64); err != nil || len(size) > maxDigits {
			return apierror.New(api.BadArg, "size: %.32q: must be a number of bytes", size)
		}
	}
	if len(duration) > 0 {
		if d, err := strconv.ParseFloat(keys.View(duration), 64); err != nil || !(d >= 0) || d > 1e9 {
			return apierror.New(api.BadArg, "duration: %.32q: must be a number of seconds", duration)
		}
	}
	return nil
}

// answerFields is the fields of requests that rules about answers need, when they are counted.
type answerFields struct {
	names []string
	form  uint32 // identifies names
	uses  []fieldUse
}

// maxRequest bounds the bytes of the fields in an id, so that the text of one without a reservation is shorter than 4 KiB: a header field
// that proxies accept.
const maxRequest = 2900

// newAnswerFields returns the fields that rules and counters of file need which look at answers.
func newAnswerFields(file *rules.File, uses []fieldUse) (f answerFields, err error) {
	var limits []ratelimit.Rule
	for i := range uses {
		u := &uses[i]
		if !when.NeedsAnswer(u.when) {
			continue
		}
		f.uses = append(f.uses, *u)
		f.names = slices.Concat(f.names, keyvalue.Fields(u.key), when.Fields(u.when))
		if r, err := file.Limits.Named(u.name); err == nil && u.limits {
			limits = append(limits, *r)
		}
	}
	if len(f.uses) == 0 {
		return f, nil
	}
	set, err := ratelimit.NewSet(ratelimit.SetConfig{}, limits...)
	if err != nil {
		return f, err
	}
	f.names = append(append(f.names, match.Client.String()), set.Internal().Fields()...) // lists of what is allowed have clients
	slices.Sort(f.names)
	f.names = slices.DeleteFunc(slices.Compact(f.names), eventfield.IsOfAnswer)
	h := fnv.New32a()
	h.Write([]byte(strings.Join(f.names, "\x00")))
	f.form = h.Sum32()
	return f, nil
}

// awaits reports whether some answer to the request ev counts.
func (f *answerFields) awaits(ev *match.Event) bool {
	return slices.ContainsFunc(f.uses, func(u fieldUse) bool { return u.request.Holds(ev) })
}

// request sets r to the part of an id for the answer to ev. It is empty if no answer counts and the event is not kept for one, but for the
// time of the id if that has a reservation.
func (f *answerFields) request(r *reservations.Request, ev *match.Event, ends time.Time, reserved bool) {
	if eventfield.HasAnswer(ev) || !f.awaits(ev) && (r.Place == 0 || f.size(ev) > maxRequest) {
		if r.Place = 0; reserved {
			r.Ends = ends
		}
		return
	}
	r.Ends, r.Form = ends, f.form
	for name, value := range ev.Fields() {
		if slices.Contains(f.names, name) {
			r.Fields = append(r.Fields, reservations.Field{Name: name, Value: value})
		}
	}
}

// size returns how many bytes the fields of ev take in an id.
func (f *answerFields) size(ev *match.Event) (size int) {
	const overhead = 1 + 2 // for the lengths of a name and a value
	for name, value := range ev.Fields() {
		if slices.Contains(f.names, name) {
			size += len(name) + len(value) + overhead
		}
	}
	return size
}

// checkSize returns an error if the fields of ev do not fit in an id.
func (f *answerFields) checkSize(ev *match.Event) error {
	if size := f.size(ev); size > maxRequest && f.awaits(ev) {
		return apierror.New(api.BadArg, "%d bytes in the fields that rules about answers need: must be at most %d in an id", size, maxRequest)
	}
	return nil
}

// counts reports whether an answer to the request of an id may count: else the id was asked for, and no rule looked at the answer.
func counts(r *reservations.Request) bool { return len(r.Fields) > 0 || r.Form != 0 || r.Place != 0 }

// fill sets the fields of r in ev, which replace those of ev.
func fill(ev *match.Event, r *reservations.Request, in *ruleSet) {
	for _, f := range r.Fields {
		ev.SetNamed(f.Name, f.Value)
	}
	if len(r.Fields) > 0 && in.geo != nil {
		in.geo.Set(ev)
	}
}

// A report is an outcome that is reported by the id of its decision.
type report struct {
	query  int // its number in the batch
	number uint64
	name   string // by which a store remembers the id
	ends   time.Time
	place  keptevents.Place // of the request, or 0
}

// open returns the id of the decision about the request of an outcome, and the report of it.
func (s *Session) open(text string) (reservations.Request, report, error) {
	x, number, err := s.e.ids.Open(text)
	switch {
	case err != nil:
		return reservations.Request{}, report{}, err
	case x.Asked.Ends.IsZero():
		return reservations.Request{}, report{}, apierror.New(api.BadID, "id: only for SETTLE: must be of a decision that was asked for an id to report its outcome by")
	case s.e.Now().After(x.Asked.Ends):
		return reservations.Request{}, report{}, apierror.New(api.Expired, "id: its time was over at %s: the answer is not counted; report it with the fields of the request", x.Asked.Ends.UTC().Format(time.RFC3339))
	}
	r := report{number: ^number, name: x.Ticket.ID, ends: x.Asked.Ends}
	if x.Life == s.e.lives.Current() {
		r.place = x.Asked.Place
	}
	return x.Asked, r, nil
}

// openOutcome makes ev an answer on these terms. It returns the request of its id, if it has one, and the report of it.
func (s *Session) openOutcome(ev *match.Event, terms *Terms) (of reservations.Request, reported report, err error) {
	if err = checkAnswer(ev); err == nil && terms.ByID && terms.ID != "" {
		of, reported, err = s.open(terms.ID)
	}
	terms.Peek = terms.Peek || terms.ByID && !counts(&of)
	ev.Part = match.Answer
	return of, reported, err
}

// once has the reports of b that were made before change nothing: those that the store of the servers has had, and those that this
// process has counted, also while the store did not answer.
func (s *Session) once(now time.Time, b *queue) {
	elsewhere := s.e.reportedElsewhere(b.reports)
	for i := range b.reports {
		r := &b.reports[i]
		q := &b.queries[r.query]
		if q.Peek = elsewhere[i]; q.Peek {
			continue // it is not remembered here: of two at the same time, one has to count
		}
		first, fits := s.e.settled.Add(now, r.number, r.ends)
		q.Peek = fits && !first // else it is counted, perhaps twice, rather than never
	}
}

// reportedElsewhere reports which ids the store of the servers has had before.
func (e *Engine) reportedElsewhere(reports []report) []bool {
	if e.config.Once == nil {
		return make([]bool, len(reports))
	}
	names, ends := make([]string, len(reports)), make([]time.Time, len(reports))
	for i := range reports {
		names[i], ends[i] = reports[i].name, reports[i].ends
	}
	return e.config.Once(names, ends)
}

// answered counts an answer in the totals, and keeps it.
func (s *Session) answered(t time.Time, ev *match.Event, cost uint64) {
	s.n++
	s.totals.outcomes.Add(1)
	if s.e.kept != nil {
		s.e.kept.AddAnswer(s.stripe, t, ev, cost, s.place)
	}
}
