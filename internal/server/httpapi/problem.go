package httpapi

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/lately-go/lately/api"
	"github.com/lately-go/lately/internal/server/access"
	"github.com/lately-go/lately/internal/server/apierror"
	"github.com/lately-go/lately/rules"
)

// An apiError is an error with the answer to the request that caused it.
type apiError struct {
	api.Problem
	header []field // of the answer
}

// problemf returns an apiError with that status, code and detail.
func problemf(status int, code api.Code, format string, args ...any) *apiError {
	detail := strings.ToValidUTF8(fmt.Sprintf(format, args...), "\uFFFD")
	return &apiError{Problem: api.Problem{Type: "about:blank", Title: http.StatusText(status), Status: status, Detail: detail, Code: code}}
}

func badArg(format string, args ...any) *apiError {
	return problemf(http.StatusBadRequest, api.BadArg, format, args...)
}

// with adds a field to the header of the answer, and returns e.
func (e *apiError) with(name, value string) *apiError {
	e.header = append(e.header, field{name, []string{value}})
	return e
}

// closes makes the answer end the connection, since the rest of the request is not read.
func (e *apiError) closes() *apiError { return e.with("Connection", "close") }

// asks makes the answer ask for a token.
func (e *apiError) asks() *apiError { return e.with("Www-Authenticate", `Bearer realm="lately"`) }

// Error returns the code and what is wrong.
func (e *apiError) Error() string { return string(e.Code) + " " + e.Detail }

// The errors that say the same to everyone.
var (
	errPanic   = problemf(http.StatusInternalServerError, api.Failed, "the request failed; the server's log says why")
	errHost    = problemf(http.StatusMisdirectedRequest, api.NoPerm, "Host: unknown: must be localhost, an address of this server, or a name of the setting host")
	errOrigin  = problemf(http.StatusForbidden, api.NoPerm, "Origin: unknown: must be that of the console, or absent")
	errNoToken = problemf(http.StatusUnauthorized, api.NoAuth, "a token is needed: Authorization: Bearer TOKEN, or X-Lately-Token: TOKEN").asks()
	errToken   = problemf(http.StatusUnauthorized, api.WrongPass, "the token is unknown").asks()
	errPath    = problemf(http.StatusNotFound, api.BadArg, "path: unknown; /openapi.json has the paths of this server")
	errBusy    = problemf(http.StatusServiceUnavailable, api.Overload, "too many large requests are being received, or large answers being sent; try again later").with("Retry-After", "1").closes()
	errStreams = problemf(http.StatusServiceUnavailable, api.Overload, "there are too many subscribers").with("Retry-After", "5")
	errSlow    = problemf(http.StatusRequestTimeout, api.BadArg, "the body did not arrive within 5 seconds").closes()
	errPacked  = problemf(http.StatusUnsupportedMediaType, api.BadArg, "body: compressed: must be sent without Content-Encoding")
)

// errTooLong answers a body of more than most bytes.
func errTooLong(most int) *apiError {
	return problemf(http.StatusRequestEntityTooLarge, api.BadArg, "body: too long (max %d bytes)", most).closes()
}

// asAPI returns err as what is answered.
func asAPI(err error) *apiError {
	if e, ok := errors.AsType[*apiError](err); ok {
		return e
	}
	if e, ok := errors.AsType[*apierror.Error](err); ok {
		return problemf(statusOf(e.Code), e.Code, "%s", e.Message)
	}
	if errs, ok := errors.AsType[rules.Errors](err); ok {
		e := problemf(http.StatusUnprocessableEntity, api.BadArg, "mistakes in the rules file: %d; the rules in force stay", len(errs))
		e.Errors = mistakes(errs)
		return e
	}
	return problemf(http.StatusInternalServerError, api.Failed, "%v", err)
}

// failureOf returns err as the error of an entry of a list.
func failureOf(err error) *api.Failure {
	e := asAPI(err)
	return &api.Failure{Code: e.Code, Detail: e.Detail}
}

func statusOf(c api.Code) int {
	switch c {
	case api.NoRule, api.NoFeed, api.BadID, api.Expired:
		return http.StatusNotFound
	case api.BadArg:
		return http.StatusBadRequest
	case api.NoAuth, api.WrongPass:
		return http.StatusUnauthorized
	case api.NoPerm:
		return http.StatusForbidden
	case api.Conflict:
		return http.StatusConflict
	case api.Overload:
		return http.StatusServiceUnavailable
	}
	return http.StatusInternalServerError
}

// problem answers with what is wrong.
func (c *call) problem(err error) {
	e := asAPI(err)
	if c.r.URL.Path != "/readyz" { // whose errors are about the server, not about requests
		c.s.Errors.Add(1)
		if e.Code == api.Overload {
			c.s.Overloaded.Add(1)
			c.s.Limited.Warn("overload: a request is refused", "listener", "http", "peer", access.PeerName(c.peer()), "error", e.Detail)
		}
	}
	if e.Status >= http.StatusInternalServerError || e.Code == api.NoRule || e.Code == api.BadArg {
		c.session.Failed()
	}
	setHeader(c.w.Header(), e.header)
	c.out = e.document()
	c.write(e.Status, problemType)
}

// document returns the problem document of e.
func (e *apiError) document() []byte {
	b, _ := json.Marshal(&e.Problem) // strings and numbers have no errors
	return append(b, '\n')
}

func mistakes(errs rules.Errors) []api.Mistake {
	out := make([]api.Mistake, len(errs))
	for i, e := range errs {
		out[i] = api.Mistake{Line: e.Line, Column: e.Column, Message: strings.ToValidUTF8(e.Message, "\uFFFD")}
	}
	return out
}
