package engine

import (
	"fmt"

	"github.com/lately-go/lately/api"
)

// An Error is an error of an Engine, in words for the client.
type Error struct {
	Code    api.Code
	Message string
}

// Error returns the code and the message.
func (e *Error) Error() string { return string(e.Code) + " " + e.Message }

func errorf(c api.Code, format string, args ...any) *Error {
	return &Error{c, fmt.Sprintf(format, args...)}
}
