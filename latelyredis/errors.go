package latelyredis

import (
	"errors"
	"fmt"
	"strings"
)

// A ServerError is an error reply of the server. Its text states what to do. The call was not
// retried, and nothing was counted.
type ServerError struct {
	// Code is the first word of the answer, such as READONLY.
	Code string
	// Err is the error of the client library.
	Err error
}

// NewServerError returns a ServerError for an error reply that a client library returned as err. It is for implementations
// of [Conn].
func NewServerError(err error) *ServerError { return &ServerError{Code: codeOf(err.Error()), Err: err} }

// Error returns the server's text and what to do about it.
func (e *ServerError) Error() string {
	if advice, ok := advices[e.Code]; ok {
		return fmt.Sprintf("latelyredis: %s: %v", advice, e.Err)
	}
	return fmt.Sprintf("latelyredis: the server answered with an error: %v", e.Err)
}

// Unwrap returns e.Err.
func (e *ServerError) Unwrap() error { return e.Err }

// codeIs reports whether err is an answer of the server with that code.
func codeIs(err error, code string) bool {
	answer, ok := errors.AsType[*ServerError](err)
	return ok && answer.Code == code
}

// A RuleError reports a rule that cannot be kept in Redis.
type RuleError struct {
	Rule string // its name
	Err  error  // the part that cannot be kept
}

// Error names the rule and the part that cannot be kept.
func (e *RuleError) Error() string { return fmt.Sprintf("latelyredis: rule %q: %v", e.Rule, e.Err) }

// Unwrap returns e.Err.
func (e *RuleError) Unwrap() error { return e.Err }

// advices says what the errors mean that a server which is set up wrongly, or is not ready,
// answers. NOSCRIPT is not among them: the script is then sent in full. DAMAGED and NEWERFORM are errors of the
// scripts.
var advices = map[string]string{
	"READONLY":    "the server is a replica: connect to the primary, or through Sentinel or Cluster",
	"LOADING":     "the server is loading its data, and answers when that is done",
	"OOM":         "the server is out of memory: raise maxmemory",
	"NOPERM":      "the ACL user lacks a permission: docs/redis.md has all that it needs",
	"NOAUTH":      "the server requires a password",
	"WRONGPASS":   "the server rejects the password",
	"MASTERDOWN":  "the server is a replica without its primary",
	"CLUSTERDOWN": "the cluster does not serve this slot",
	"MOVED":       "the server is a node of a cluster: use a client for clusters",
	"ASK":         "the server is a node of a cluster: use a client for clusters",
	"TRYAGAIN":    "the slot of the key is moving to another node, and the keys of the subject are on both",
	"BUSY":        "the server is busy with a script of someone else",
	"MISCONF":     "the server cannot write its snapshot, and accepts no writes until it can",
	"NOREPLICAS":  "too few replicas are connected: see min-replicas-to-write",
	"DAMAGED":     "the record of a key was damaged and is deleted: its counts begin at zero",
	"NEWERFORM":   "a newer version of this program has written what is counted of the key: upgrade this one",
	"WRONGTYPE":   "a key with the store's prefix is not of the store: use a prefix of its own",
}

// noPermission is what scripts answer instead of NOPERM: the first up to Redis 7.0, the second
// since 7.2, and Valkey.
var noPermission = []string{"The user executing the script can't", "ACL failure in script"}

// codeOf returns the code of what a server answered: ERR if it has none. Older servers put
// the code of an error in a script behind other words.
func codeOf(message string) string {
	for _, text := range noPermission {
		if strings.Contains(message, text) {
			return "NOPERM"
		}
	}
	code, _, _ := strings.Cut(message, " ")
	if strings.ToUpper(code) == code && code != "ERR" {
		return code
	}
	for c := range advices {
		if strings.Contains(message, c+" ") {
			return c
		}
	}
	return "ERR"
}
