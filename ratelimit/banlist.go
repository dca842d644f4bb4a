package ratelimit

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"time"

	"github.com/lately-go/lately/internal/ban"
	"github.com/lately-go/lately/window"
)

// ErrBansFull is the error for a ban when the store has no memory for it.
var ErrBansFull = errors.New("ratelimit: no memory for another ban")

// A BanList is the list of the bans of a [Limiter]: it lists, adds, removes, exports and
// imports them. Get it from [Limiter.Bans]. Bans that rules begin are in it too.
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

// At returns the list as of time t, for a Limiter that judges at the times of events.
func (b BanList) At(t time.Time) BanList {
	return BanList{limiter: b.limiter, at: nanos(t), fixed: true}
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
	_, err = b.limiter.addBan(r, key, now)
	return err
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

// Get returns the ban of a key under the named rule, or of a network that contains its client.
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
	if l.memory != nil {
		record, held = l.memory.banOf(rule, k, b.now())
		return record, held, nil
	}
	c := banCopy(l.store.Bans())
	return c.get(rule, k)
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

// Page returns a page of the bans that q selects, newest first. A ban that lasts until the last
// page is read is on exactly one page; a ban that begins after the first is on none. With a
// shared store, Page reads this process's copy; see Get.
//
// The error is a [*RuleError] for an unknown rule. Otherwise it reports a cursor that no page has
// returned, or that the copy is not available yet. Each page scans all bans, some hundred at a
// time under a lock that decisions take only to begin a ban, and allocates for the bans that it
// returns.
func (b BanList) Page(q BanQuery) (BanPage, error) {
	c := b.copy()
	return c.page(q)
}

// copy returns the bans that this process knows of.
func (b BanList) copy() banCopy {
	if m := b.limiter.memory; m != nil {
		return m.copyAt(b.now())
	}
	return banCopy(b.limiter.store.Bans())
}

// Export writes the current bans to w as JSON, one object per line. The error is from w or from
// the store; the bans before it have been written.
func (b BanList) Export(w io.Writer) error {
	buffered := bufio.NewWriter(w)
	lines := json.NewEncoder(buffered)
	lines.SetEscapeHTML(false)
	for r, err := range b.All() {
		if err == nil {
			err = lines.Encode(r)
		}
		if err != nil {
			return errors.Join(err, buffered.Flush())
		}
	}
	return buffered.Flush()
}

// Import adds the bans that Export has written, with their starts, ends and counts. It skips bans
// that have ended, and keeps an existing ban of the same key that ends later. With a shared store,
// existing bans are counted as added.
//
// It stops at the first line that is not a ban; the error contains the line number. The bans
// before it have been added, and importing them again changes nothing.
func (b BanList) Import(r io.Reader) (done window.Imported, err error) {
	n := 0
	for record, err := range readBans(r) {
		if n++; err != nil {
			return done, err
		}
		if err := b.limiter.importBan(&record, b.now(), &done); err != nil {
			return done, fmt.Errorf("ban %d: %w", n, err)
		}
	}
	return done, nil
}

// importBan adds b, and counts it in done.
func (l *Limiter) importBan(b *BanRecord, now int64, done *window.Imported) error {
	if nanos(b.Until) <= now {
		done.Expired++
		return nil
	}
	r, err := l.Set().Named(b.Rule)
	if err != nil {
		done.Unknown++
		return nil
	}
	key, digest := listedDigest(r.Key, b.Key)
	if len(r.Key.Fields()) != len(b.Key) && (!digest || b.Source != ban.SourceRule || l.memory == nil) {
		done.Unknown++
		return nil
	}
	if !digest {
		var allowed bool
		if key, allowed, err = l.checkBan(b, now); err != nil {
			return err
		}
		if allowed {
			done.Allowed++
			return nil
		}
	}
	switch result, err := l.addBan(*b, key, now); {
	case errors.Is(err, ErrBansFull):
		done.Refused++
	case err != nil:
		return err
	case result == ban.Kept:
		done.Kept++
	default:
		done.Bans++
	}
	return nil
}

// addBan adds b, which was validated, to the store.
func (l *Limiter) addBan(b BanRecord, key []byte, now int64) (ban.Result, error) {
	if l.memory != nil {
		return l.memory.addBan(b, key, now)
	}
	ctx, cancel := l.within(max(l.timeout, banTimeout))
	defer cancel()
	return ban.Added, l.store.Ban(ctx, b)
}
