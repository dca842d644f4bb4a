package engine

import (
	"strconv"

	"github.com/lately-go/lately/api"
	"github.com/lately-go/lately/internal/server/apierror"
	"github.com/lately-go/lately/match"
)

// maxDigits is how long a size may be, in decimal.
const maxDigits = 19

// checkAnswer returns an error if ev has no field of an answer, or one with a value that no answer has.
func checkAnswer(ev *match.Event) error {
	status, size, duration := ev.Get(match.Status), ev.Get(match.Size), ev.GetNamed(match.DurationField)
	if !ev.HasAnswer() {
		return apierror.New(api.BadArg, "status, size, duration: all missing: an outcome must have one of them")
	}
	if len(status) > 0 {
		if n, err := strconv.Atoi(view(status)); err != nil || len(status) != 3 || n < 100 || n > 599 {
			return apierror.New(api.BadArg, "status: %.16q: must be 100 to 599", status)
		}
	}
	if len(size) > 0 {
		if _, err := strconv.ParseUint(view(size), 10, 64); err != nil || len(size) > maxDigits {
			return apierror.New(api.BadArg, "size: %.32q: must be a number of bytes", size)
		}
	}
	if len(duration) > 0 {
		if d, err := strconv.ParseFloat(view(duration), 64); err != nil || !(d >= 0) || d > 1e9 {
			return apierror.New(api.BadArg, "duration: %.32q: must be a number of seconds", duration)
		}
	}
	return nil
}

// answered counts an answer in the totals.
func (s *Session) answered() {
	s.n++
	s.totals.outcomes.Add(1)
	if s.e.kept != nil {
		s.e.kept.MissAnswer(s.stripe)
	}
}
