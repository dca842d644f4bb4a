package client

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/lately-go/lately/api"
)

// An Error is what a server would not do, and why. Detail is the server's sentence,
// for people; it may repeat what it was sent.
type Error struct {
	Code       api.Code
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
	e := &Error{Code: api.Failed, Status: resp.StatusCode}
	var wire api.Problem
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
			e.Code = api.NoAuth
		case http.StatusForbidden:
			e.Code = api.NoPerm
		}
	}
	if s, err := strconv.Atoi(resp.Header.Get("Retry-After")); err == nil && s > 0 {
		e.RetryAfter = time.Duration(min(s, 3600)) * time.Second
	}
	return e
}
