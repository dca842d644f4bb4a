// Package apierror defines the errors that all listeners send to clients.
package apierror

import (
	"errors"
	"fmt"
	"strings"

	"github.com/lately-go/lately/api"
	"github.com/lately-go/lately/internal/batch"
	"github.com/lately-go/lately/ratelimit"
)

// An Error is an error in words for the client.
type Error struct {
	Code    api.Code
	Message string
}

// New returns an *Error whose message has this format.
func New(c api.Code, format string, args ...any) error {
	return &Error{c, fmt.Sprintf(format, args...)}
}

// Unknown returns the *Error for a name of that kind that is not in names.
func Unknown(c api.Code, kind, name string, names []string) error {
	if len(names) == 0 {
		return New(c, "%s %.80q: unknown: there are none", kind, name)
	}
	return New(c, "%s %.80q: unknown: must be one of %s", kind, name, strings.Join(names, ", "))
}

// Of returns err, an error from a limiter or nil, as an *Error if the client caused it.
func Of(err error) error {
	if err == nil {
		return nil // as nearly always
	}
	text := func() string { return strings.TrimPrefix(err.Error(), "ratelimit: ") }
	if _, ok := errors.AsType[*ratelimit.RuleError](err); ok {
		return New(api.NoRule, "%s", text())
	}
	if _, ok := errors.AsType[*batch.FixedLimitError](err); ok {
		return New(api.BadArg, "%s", text())
	}
	if errors.Is(err, ratelimit.ErrBadKey) {
		return New(api.BadArg, "%v", errors.Unwrap(err))
	}
	return err
}

// Error returns the code and the message.
func (e *Error) Error() string { return string(e.Code) + " " + e.Message }
