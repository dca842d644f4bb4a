package hotkeys

import (
	"container/list"
	"time"

	"github.com/lately-go/lately/api"
)

// An entry is a key that is hot under a rule.
type entry struct {
	Rule string
	ID   string   // of the key under its rule
	Key  api.Key  // as watchers are told
	of   *hotRule // or nil if it is not hot

	Since time.Time
	Until time.Time     // zero: always hot
	Hold  time.Duration // how much longer it stays hot if it is busy when Until is near
	Lo    uint64
	Hi    uint64 // 0: unknown, or none

	Hand    bool   // added by hand
	Changed uint64 // the version at which its value last changed, which the list sets

	joined uint64 // the version at which it became hot
}

// entryBytes is about what an entry takes besides its strings.
const entryBytes = 512

// bytes returns about how much memory e takes.
func (e *entry) bytes() int64 {
	n := entryBytes + len(e.ID)
	for _, v := range e.Key.Text {
		n += len(v)
	}
	for _, v := range e.Key.Base64 {
		n += len(v)
	}
	return int64(n)
}

// always reports whether e is hot without end.
func (e *entry) always() bool { return e.Until.IsZero() }

// notice returns how long before Until the list inspects whether e is busy: early enough
// for watchers to learn that it stays hot before its time is over.
func (e *entry) notice() time.Duration { return min(e.Hold/8, time.Second) }

// HotKey returns e in the form of the API, with the time that is left at now.
func (e *entry) HotKey(now time.Time) api.HotKey {
	k := api.HotKey{Rule: e.Rule, Key: e.Key, Since: e.Since.UTC(), Lo: e.Lo, Hi: e.Hi, Changed: e.Changed, Hand: e.Hand}
	if !e.always() {
		k.Until = e.Until.UTC()
		k.TTL = max(api.MillisOf(max(e.Until.Sub(now), 0)), 1)
	}
	return k
}

// ruleKey returns what e is a key of.
func (e *entry) ruleKey() api.RuleKey { return api.RuleKey{Rule: e.Rule, Key: e.Key} }

// A node is an entry in the list. It is kept for a while when the key is no longer hot, so
// that watchers can be told.
type node struct {
	entry
	hot     bool
	touched uint64    // the version at which the entry last changed
	due     time.Time // when to inspect whether it stays hot
	place   int       // in hotList.due, or -1

	order *list.Element // among all nodes, by their last change
	cold  *list.Element // among those that are not hot, or nil
}

// version returns the version of the last change of n.
func (n *node) version() uint64 { return max(n.touched, n.Changed) }
