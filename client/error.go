package client

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// A Code says in a word why a server would not do something. Servers that are newer
// than this package may have others.
type Code string

// The codes.
const (
	NoRule    Code = "NORULE"    // there is no rule of that name
	BadArg    Code = "BADARG"    // an argument is not what is allowed
	NoAuth    Code = "NOAUTH"    // the request has no token
	WrongPass Code = "WRONGPASS" // the token is unknown
	NoPerm    Code = "NOPERM"    // the token's role may not do that
	Overload  Code = "OVERLOAD"  // there is no room or time for it now
	Failed    Code = "ERR"       // anything else
)

// An Error is what a server would not do, and why. Detail is the server's sentence,
// for people; it may repeat what it was sent.
type Error struct {
	Code       Code
	Detail     string
	Status     int           // of the HTTP answer
	RetryAfter time.Duration // that the server asks for; 0 if it does not
}

// Error returns the code and the detail.
func (e *Error) Error() string { return string(e.Code) + " " + e.Detail }

// Temporary reports whether the same request may be answered later: the server is
// overloaded, starting or ending.
func (e *Error) Temporary() bool {
	return e.Status >= 500 || e.Status == http.StatusTooManyRequests || e.Status == http.StatusRequestTimeout
}

// problem makes an Error of an answer that is not a good one, whoever sent it: what
// stands between may answer as well.
func problem(resp *http.Response) *Error {
	e := &Error{Code: Failed, Status: resp.StatusCode}
	var wire struct {
		Code   Code   `json:"code"`
		Detail string `json:"detail"`
		Title  string `json:"title"`
	}
	body, _ := io.ReadAll(io.LimitReader(resp.Body, maxProblem))
	if strings.Contains(resp.Header.Get("Content-Type"), "json") && json.Unmarshal(body, &wire) == nil {
		e.Detail = wire.Detail
		if e.Detail == "" {
			e.Detail = wire.Title
		}
		if wire.Code != "" {
			e.Code = wire.Code
		}
	}
	if e.Detail == "" {
		e.Detail = fmt.Sprintf("the answer is %d %s", resp.StatusCode, http.StatusText(resp.StatusCode))
		switch resp.StatusCode {
		case http.StatusUnauthorized:
			e.Code = NoAuth
		case http.StatusForbidden:
			e.Code = NoPerm
		}
	}
	if s, err := strconv.Atoi(resp.Header.Get("Retry-After")); err == nil && s > 0 {
		e.RetryAfter = time.Duration(min(s, 3600)) * time.Second
	}
	return e
}
