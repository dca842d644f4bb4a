package ratelimit

import (
	"errors"
	"fmt"
	"iter"
	"time"

	"github.com/lately-go/lately/internal/ban"
)

// ErrBansFull is the error for a ban when the store has no memory for it.
var ErrBansFull = errors.New("ratelimit: no memory for another ban")

// A BanList is the list of the bans of a [Limiter]: it lists, adds and removes them. Get it from [Limiter.Bans]. Bans that rules begin are in it too.
//
// A key is the list of the values of the rule's key, in the order of its fields. A client
// is folded as in an event: an address becomes its prefix. Other values are not changed,
// so a path must already be clean.
//
// The list has no state of its own. It is safe for concurrent use.
type BanList struct {
	limiter *Limiter
	at      int64
	fixed   bool // the time is at, not the present
}

// Bans returns the list of bans.
func (l *Limiter) Bans() BanList { return BanList{limiter: l} }

// BansAt returns the list of bans as of time t, for a Limiter that judges at the times of a log.
func (l *Limiter) BansAt(t time.Time) BanList {
	return BanList{limiter: l, at: nanos(t), fixed: true}
}

func (b BanList) now() int64 {
	if b.fixed {
		return b.at
	}
	return b.limiter.now()
}

// Add bans a key under a rule from now on, until r.Until. The zero r.Since is now, and
// the empty r.Source is "manual". A ban of the key that ends later is kept instead.
//
// The key may be a network, such as 192.0.2.0/24, if the rule's key is the client alone and
// the store is memory: every client in it is then banned, whatever it has counted.
// Decisions then cost one more lookup for each prefix length among such networks.
//
// It is an error if r is not valid, if the client is any other network that the rule does not
// fold clients to, or if it is on the allow list. If there is no memory for another ban, the
// error of the memory store is [ErrBansFull].
func (b BanList) Add(r BanRecord) error {
	now := b.now()
	key, allowed, err := b.limiter.checkBan(&r, now)
	if err != nil {
		return err
	}
	if nanos(r.Until) <= now {
		return fmt.Errorf("until: %s: must be in the future", formatTime(r.Until))
	}
	if allowed {
		return fmt.Errorf("key: %q: is on the allow list: must be another client", r.Key)
	}
	return b.limiter.addBan(r, key, now)
}

// Remove ends the ban of a key under the named rule, and deletes the bans before it, so
// that the next ban is as long as the first. It reports whether a ban held.
func (b BanList) Remove(rule string, key ...string) (held bool, err error) {
	l := b.limiter
	_, k, err := l.listedKey(rule, key)
	if err != nil {
		return false, err
	}
	if local := l.local.Load(); local != nil {
		held = local.removeBan(rule, k, b.now())
	}
	if l.memory == nil {
		ctx, cancel := l.within(max(l.timeout, banTimeout))
		defer cancel()
		at, err := l.store.Unban(ctx, rule, k)
		return held || at, err
	}
	return held, nil
}

// Get returns the ban of a key under the named rule, or the one that ends last of the networks that contain its client.
// held is false if there is none. The cost is one lookup, under a lock that decisions take only to
// begin a ban.
//
// With a shared store, the list is this process's copy, so Get takes no round trip. A ban that
// began here is in it at once, a ban of another process when the store has announced it.
//
// The error is a [*RuleError] for an unknown rule. Otherwise it reports a bad key, or that the
// copy is not available yet.
func (b BanList) Get(rule string, key ...string) (record BanRecord, held bool, err error) {
	l := b.limiter
	_, k, err := l.listedKey(rule, key)
	if err != nil {
		return record, false, err
	}
	c := b.copy()
	if record, held, err = c.get(rule, k); !held && l.memory != nil {
		record, held = l.memory.networkBan(rule, k, c.Now)
	}
	return record, held, err
}

// All yields the current bans in the order in which they end. With a shared store, it reads
// this process's copy; see Get. No lock is held while the loop's body runs: a ban that begins
// or ends meanwhile may be missing. It yields an error, and nothing else, if the store has no
// copy yet.
func (b BanList) All() iter.Seq2[BanRecord, error] {
	return func(yield func(BanRecord, error) bool) {
		c := b.copy()
		c.all(yield)
	}
}

// copy returns the bans that this process knows of.
func (b BanList) copy() banCopy {
	if m := b.limiter.memory; m != nil {
		return m.copyAt(b.now())
	}
	return banCopy(b.limiter.store.Bans())
}

// restoreBan is [internal.RestoreBan] at now.
func (l *Limiter) restoreBan(b *BanRecord, now int64) error {
	r, err := l.Set().Named(b.Rule)
	if err != nil || nanos(b.Until) <= now {
		return nil
	}
	key, digest := listedDigest(r.Key, b.Key)
	if len(r.Key.Fields()) != len(b.Key) && (!digest || b.Source != ban.SourceRule || l.memory == nil) {
		return nil
	}
	if !digest {
		var allowed bool
		if key, allowed, err = l.checkBan(b, now); err != nil || allowed {
			return err
		}
	}
	return l.addBan(*b, key, now)
}

// addBan adds b, which was validated, to the store.
func (l *Limiter) addBan(b BanRecord, key []byte, now int64) error {
	if l.memory != nil {
		return l.memory.addBan(b, key, now)
	}
	ctx, cancel := l.within(max(l.timeout, banTimeout))
	defer cancel()
	return l.store.Ban(ctx, b)
}
