package engine

import "fmt"

// A Code says what kind of [Error] it is, in a word for programs.
type Code string

// The codes.
const (
	NoRule    Code = "NORULE"    // there is no rule of that name
	BadArg    Code = "BADARG"    // an argument is not what is allowed
	NoAuth    Code = "NOAUTH"    // the caller has not said who it is
	WrongPass Code = "WRONGPASS" // the caller's token is unknown
	NoPerm    Code = "NOPERM"    // the caller's role may not do that
	Overload  Code = "OVERLOAD"  // there is no room or time for it now
	Conflict  Code = "CONFLICT"  // it would do more than was asked for
	Failed    Code = "ERR"       // anything else
)

// An Error is what an Engine could not do, and why, in words for the one who
// asked.
type Error struct {
	Code    Code
	Message string
}

// Error returns the code and the message.
func (e *Error) Error() string { return string(e.Code) + " " + e.Message }

func errorf(c Code, format string, args ...any) *Error {
	return &Error{c, fmt.Sprintf(format, args...)}
}
