package httpapi

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/lately-go/lately/api"
	"github.com/lately-go/lately/internal/server/engine"
	"github.com/lately-go/lately/rules"
)

// An apiError is an error with the answer to the request that caused it.
type apiError struct {
	status int
	code   api.Code
	detail string
	errors []api.Mistake // of a rules file
	retry  time.Duration // the value of Retry-After, if there is one
	closes bool          // the connection, since the rest of the request is not read
	allow  string        // the value of Allow, if there is one
}

// Error returns the code and what is wrong.
func (e *apiError) Error() string { return string(e.code) + " " + e.detail }

// The errors that say the same to everyone.
var (
	errPanic   = &apiError{status: http.StatusInternalServerError, code: api.Failed, detail: "the request failed; the server's log says why"}
	errHost    = &apiError{status: http.StatusMisdirectedRequest, code: api.NoPerm, detail: "Host: unknown: must be localhost, an address of this server, or a name of the setting host"}
	errOrigin  = &apiError{status: http.StatusForbidden, code: api.NoPerm, detail: "Origin: unknown: must be that of the console, or absent"}
	errNoToken = &apiError{status: http.StatusUnauthorized, code: api.NoAuth, detail: "a token is needed: Authorization: Bearer TOKEN, or X-Lately-Token: TOKEN"}
	errToken   = &apiError{status: http.StatusUnauthorized, code: api.WrongPass, detail: "the token is unknown"}
	errPath    = &apiError{status: http.StatusNotFound, code: api.BadArg, detail: "path: unknown; /openapi.json has the paths of this server"}
	errBusy    = &apiError{status: http.StatusServiceUnavailable, code: api.Overload, detail: "too many large requests are being received, or large answers being sent; try again later", retry: time.Second, closes: true}
	errSlow    = &apiError{status: http.StatusRequestTimeout, code: api.BadArg, detail: "the body did not arrive within 5 seconds", closes: true}
)

// errTooLong answers a body of more than most bytes.
func errTooLong(most int) *apiError {
	return &apiError{
		status: http.StatusRequestEntityTooLarge, code: api.BadArg, closes: true,
		detail: fmt.Sprintf("body: too long (max %d bytes)", most),
	}
}

func badArg(format string, args ...any) *apiError {
	return &apiError{status: http.StatusBadRequest, code: api.BadArg, detail: fmt.Sprintf(format, args...)}
}

// asAPI returns err as what is answered.
func asAPI(err error) *apiError {
	if e, ok := errors.AsType[*apiError](err); ok {
		return e
	}
	if e, ok := errors.AsType[*engine.Error](err); ok {
		return &apiError{status: statusOf(e.Code), code: e.Code, detail: strings.ToValidUTF8(e.Message, "\uFFFD")}
	}
	if e, ok := errors.AsType[rules.Errors](err); ok {
		return &apiError{
			status: http.StatusUnprocessableEntity, code: api.BadArg, errors: mistakes(e),
			detail: fmt.Sprintf("the rules file has %d mistakes; the rules in force stay", len(e)),
		}
	}
	return &apiError{status: http.StatusInternalServerError, code: api.Failed, detail: strings.ToValidUTF8(err.Error(), "\uFFFD")}
}

func statusOf(c api.Code) int {
	switch c {
	case api.NoRule:
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
		if e.code == api.Overload {
			c.s.Overloaded.Add(1)
			c.s.Limited.Warn("overload: a request is refused", "listener", "http", "peer", c.peer().String(), "error", e.detail)
		}
	}
	h := c.w.Header()
	if e.closes {
		h["Connection"] = []string{"close"}
	}
	if e.allow != "" {
		h["Allow"] = []string{e.allow}
	}
	if e.retry > 0 {
		h["Retry-After"] = []string{strconv.FormatInt(int64((e.retry+time.Second-1)/time.Second), 10)}
	}
	if e.status == http.StatusUnauthorized {
		h["Www-Authenticate"] = []string{`Bearer realm="lately"`}
	}
	if e.status >= http.StatusInternalServerError || e.code == api.NoRule || e.code == api.BadArg {
		c.engine.Failed()
	}
	c.out = e.document()
	c.write(e.status, problemType)
}

// document returns the problem document of e.
func (e *apiError) document() []byte {
	b, _ := json.Marshal(api.Problem{ // strings and numbers have no errors
		Type: "about:blank", Title: http.StatusText(e.status), Status: e.status, Detail: e.detail, Code: e.code, Errors: e.errors,
	})
	return append(b, '\n')
}

func mistakes(errs rules.Errors) []api.Mistake {
	out := make([]api.Mistake, len(errs))
	for i, e := range errs {
		out[i] = api.Mistake{Line: e.Line, Column: e.Column, Message: strings.ToValidUTF8(e.Message, "\uFFFD")}
	}
	return out
}
