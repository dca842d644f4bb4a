package client

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/lately-go/lately/api"
)

// An Error is an error answer of a server. Detail is a sentence for people; it may
// contain a part of the request.
type Error struct {
	Code       api.Code
	Detail     string
	Status     int           // of the HTTP answer; 0 for an answer to a [Fleet]
	RetryAfter time.Duration // from the server; 0 if none
	Mistakes   []api.Mistake // of a rules file
}

// Error returns the code and the detail.
func (e *Error) Error() string { return string(e.Code) + " " + e.Detail }

// Temporary reports whether the same request may be answered later: the server is
// overloaded, starting or ending.
func (e *Error) Temporary() bool {
	return e.Code == api.Overload || e.Status >= 500 || e.Status == http.StatusTooManyRequests || e.Status == http.StatusRequestTimeout
}

// problem returns the Error of an answer, which may come from a proxy in between.
func problem(resp *http.Response) *Error {
	e := &Error{Code: api.Failed, Status: resp.StatusCode}
	var wire api.Problem
	body, _ := io.ReadAll(io.LimitReader(resp.Body, maxProblem))
	if strings.Contains(resp.Header.Get("Content-Type"), "json") && json.Unmarshal(body, &wire) == nil {
		e.Detail, e.Code = cmp.Or(wire.Detail, wire.Title), cmp.Or(wire.Code, e.Code)
		e.Mistakes = wire.Errors
	}
	if e.Detail == "" {
		e.Detail = fmt.Sprintf("the answer is %d %s", resp.StatusCode, http.StatusText(resp.StatusCode))
		if resp.Header.Get("Content-Type") == "" && len(body) > 0 { // the words of package net/http, such as about HTTP that is sent to an HTTPS listener
			line, _, _ := strings.Cut(strings.TrimSpace(string(body)), "\n")
			e.Detail += fmt.Sprintf(": %.200s", line)
		}
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
