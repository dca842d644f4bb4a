package client

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/lately-go/lately/ratelimit"
)

// Take counts an event with this key under one rule, and returns the decision. key has
// the values of the rule's key, in the order of its fields. Cost 0 means 1. It does not
// allocate, unless the key has several values or cost is more than 1.
func (f *Fleet) Take(ctx context.Context, rule string, cost uint64, key ...string) (ratelimit.Decision, error) {
	return f.judge(ctx, "TAKE", rule, cost, 0, key)
}

// TakeLimit is Take with the event's own limit; see [Client.TakeLimit].
func (f *Fleet) TakeLimit(ctx context.Context, rule string, limit, cost uint64, key ...string) (ratelimit.Decision, error) {
	return f.judge(ctx, "TAKE", rule, cost, limit, key)
}

// Peek returns the decision that Take would return now, and changes nothing.
func (f *Fleet) Peek(ctx context.Context, rule string, cost uint64, key ...string) (ratelimit.Decision, error) {
	return f.judge(ctx, "PEEK", rule, cost, 0, key)
}

func (f *Fleet) judge(ctx context.Context, verb, rule string, cost, limit uint64, key []string) (ratelimit.Decision, error) {
	var more []string
	if cost > 1 {
		more = []string{"COST", strconv.FormatUint(cost, 10)}
	}
	if limit > 0 {
		more = append(more, "LIMIT", strconv.FormatUint(limit, 10))
	}
	a, err := f.keyed(ctx, parseDecision, verb, rule, key, more...)
	return a.decision, err
}

// Refund is [Client.Refund] at the node of the key. It returns 0 if another node counts the key
// now.
func (f *Fleet) Refund(ctx context.Context, rule string, n uint64, key ...string) (uint64, error) {
	return f.giveBack(ctx, "REFUND", rule, n, key)
}

// Release ends n current events of this key under an in-flight rule, and returns the number
// ended. Take such an event before the work, and Release it after. If a client fails in
// between, or another node counts the key now, the event ends after the rule's span. Do not
// repeat a Release whose answer was lost: it might end another event. For n 0 nothing is sent.
func (f *Fleet) Release(ctx context.Context, rule string, n uint64, key ...string) (uint64, error) {
	return f.giveBack(ctx, "RELEASE", rule, n, key)
}

func (f *Fleet) giveBack(ctx context.Context, verb, rule string, n uint64, key []string) (uint64, error) {
	if n == 0 {
		return 0, nil
	}
	a, err := f.keyed(ctx, parseInt, verb, rule, key, "COST", strconv.FormatUint(n, 10))
	return uint64(a.n), err
}

// Add adds n to a key of a counter. A counter that does not exist is created, if the node
// has memory for it. For n 0 nothing is sent.
func (f *Fleet) Add(ctx context.Context, counter string, n uint64, key ...string) error {
	if n == 0 {
		return nil
	}
	_, err := f.keyed(ctx, parseOK, "ADD", counter, key, strconv.FormatUint(n, 10))
	return err
}

// Throttle counts quantity events of a key under a limit given with the call, as
// CL.THROTTLE does: count events per period, and burst more at once. The period is
// rounded up to seconds, and so are the times of the decision, which has no Rule.
// Quantity 0 counts nothing.
func (f *Fleet) Throttle(ctx context.Context, key string, burst, count uint64, period time.Duration, quantity uint64) (ratelimit.Decision, error) {
	seconds := period / time.Second
	if period%time.Second > 0 && seconds < math.MaxInt64 {
		seconds++
	}
	a, err := f.ask(ctx, parseThrottle, "", hashOf("", key), "CL.THROTTLE", key,
		strconv.FormatUint(burst, 10), strconv.FormatUint(count, 10), strconv.FormatInt(int64(seconds), 10), strconv.FormatUint(quantity, 10))
	return a.decision, err
}

// keySeparator is between the values of a key in one argument.
const keySeparator = "\t"

// keyText returns the values of a key as servers take them in one argument.
func keyText(key []string) (string, error) {
	switch len(key) {
	case 0:
		return "", errors.New("key: missing: must be a value for each field of the rule's key")
	case 1:
		return key[0], nil
	}
	for _, v := range key {
		if strings.Contains(v, keySeparator) {
			return "", fmt.Errorf("key: %.64q: must not have a tab, which separates the values", v)
		}
	}
	return strings.Join(key, keySeparator), nil
}

// keyed sends a command to the node of its key: a verb, a rule or counter, the key, and what
// follows.
func (f *Fleet) keyed(ctx context.Context, parse parser, verb, rule string, key []string, more ...string) (answer, error) {
	text, err := keyText(key)
	if err != nil {
		return answer{}, err
	}
	var args [5]string
	return f.ask(ctx, parse, rule, hashOf(rule, text), append(append(args[:0], verb, rule, text), more...)...)
}
