package latelyredis

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/lately-go/lately/internal/ban"
	"github.com/lately-go/lately/internal/wait"
)

const (
	// syncEvery is how often a node asks for the changes of the list of bans. A ban is in
	// force on all nodes within that and two round trips.
	syncEvery = 250 * time.Millisecond

	// syncTimeout bounds one of these questions.
	syncTimeout = time.Second

	// maxSyncAge is how old the copy may be for the node to be ready.
	maxSyncAge = 5 * time.Second

	// reassertBatch is how many bans are written together after they were lost.
	reassertBatch = 256
)

// Results of the script sync about the changes that a node has.
const (
	syncChanged = iota // those after them follow
	syncTrimmed        // they are no longer kept: the list has to be read
	syncLost           // they are gone: a failover, or all keys were deleted
	syncBytes   = uint56 + 4 + 1 + 8 + 8 + uint56
)

// start begins to keep the copy of the list up to date.
func (s *Store) start() {
	ctx, stop := context.WithCancel(context.Background())
	s.stop, s.copied = stop, true
	if s.batched {
		s.startMerging(ctx)
	}
	s.background.Go(func() {
		s.syncOnce(ctx)
		for range wait.Every(ctx, syncEvery) {
			s.syncOnce(ctx)
		}
		if s.refusals.gaveBack.Load() { // the other nodes must know before this one ends
			s.syncOnce(context.Background())
		}
	})
}

// syncOnce is sync with a timeout. If that fails in a cluster, it probes the nodes.
func (s *Store) syncOnce(ctx context.Context) {
	bounded, cancel := context.WithTimeout(ctx, syncTimeout)
	defer cancel()
	if s.sync(bounded) != nil && ctx.Err() == nil && s.conn.Clustered() {
		s.probe(ctx)
	}
}

// probeScript does nothing.
var probeScript = newScript("return ''")

// probe asks the nodes of a cluster whether they answer. It is for a node without requests, which otherwise
// asks for the list of bans only: if the node that has the list is away, Redis is not.
func (s *Store) probe(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, syncTimeout)
	defer cancel()
	nodes, _ := s.conn.Nodes(ctx)
	replied := make(chan error, len(nodes))
	for _, node := range nodes {
		go func() { replied <- node.Run(ctx, []Command{(&command{script: probeScript, full: true}).sent()})[0].Err }()
	}
	for range nodes {
		select {
		case err := <-replied:
			if answered(err) {
				s.breakers.parts[0].note(int64(time.Since(s.breakers.began)))
				return
			}
		case <-ctx.Done():
			return
		}
	}
}

// Close ends the goroutines of the store, and waits for them, but not for calls that Redis does not answer. It does not
// close the client.
// Later decisions still go to Redis, but the copy of the bans is no longer updated.
func (s *Store) Close() {
	s.closed.Store(true)
	s.stop()
	s.background.Wait()
}

// Nodes returns how many stores with this prefix called Redis within five seconds, this
// one included, as of the last answer, or Config.Nodes if that is more; 0 means unknown.
func (s *Store) Nodes() int { return int(max(s.nodes.Load(), s.least)) }

// errUnread is the error of a store that has not read the list of bans.
var errUnread = errors.New("latelyredis: the list of bans was not read yet")

// SyncAge returns the time since the last update of the copy of the bans, or since New if there was none.
// It is less than a second while Redis answers.
func (s *Store) SyncAge() time.Duration {
	return max(0, time.Since(s.breakers.began)-time.Duration(s.synced.Load()))
}

// Ready returns nil if Redis answers and this node has the bans of all nodes: use it as a readiness
// check. The error states why the bans were not read yet or how old the copy is, or is [ErrAway].
// It takes no round trip.
//
// In a cluster it returns nil if any node answers. If the node with the list of bans does not, no
// Store gets new bans into its copy; Redis decides with the bans in its records.
func (s *Store) Ready() error {
	if err := s.listUnread(); err != nil {
		return err
	}
	if s.breakers.away() {
		return ErrAway
	}
	if age := s.SyncAge(); age > maxSyncAge && !s.listAway() {
		err := fmt.Errorf("latelyredis: the bans of other nodes were last learned %v ago: must be at most %v", age.Truncate(time.Second), maxSyncAge)
		if failed := s.failed.Load(); failed != nil {
			err = fmt.Errorf("%w: %w", err, *failed)
		}
		return err
	}
	return nil
}

// listUnread returns why the list of bans was not read yet, or nil if it was.
func (s *Store) listUnread() error {
	if s.synced.Load() > 0 {
		return nil
	}
	if err := s.failed.Load(); err != nil {
		return fmt.Errorf("%w: %w", errUnread, *err)
	}
	return errUnread
}

// listAway reports whether the part of a cluster that has the list of bans is away, and others answer.
func (s *Store) listAway() bool {
	err := s.failed.Load()
	if err == nil || !s.conn.Clustered() || !s.breakers.answeredWithin(maxSyncAge) {
		return false
	}
	return !answered(*err) || codeIs(*err, "CLUSTERDOWN") && strings.Contains((*err).Error(), "slot not served")
}

// newNode returns a name for this store among its nodes.
func newNode() string { return rand.Text() }

// A news is a ban that is new in the copy, or one that was ended.
type news struct {
	ban   ban.Ban
	ended bool
}

// tell calls OnBan or OnUnban, if the rule is in force.
func (s *Store) tell(n *news) {
	rl := s.layout.Load().byID(n.ban.Rule)
	switch {
	case rl == nil:
	case n.ended && s.onUnban != nil:
		r := rl.record(&n.ban)
		s.onUnban(r.Rule, r.Key)
	case !n.ended && s.onBan != nil:
		s.onBan(rl.record(&n.ban))
	}
}

// sync brings the copy of the list up to date, and then calls OnBan and OnUnban for what is new in it. Nothing is
// locked then: they may call the store.
func (s *Store) sync(ctx context.Context) error {
	all, err := s.update(ctx)
	for i := range all {
		s.tell(&all[i])
	}
	return err
}

// update is sync without OnBan and OnUnban. It returns what they are to be called for, in the order of the list, also
// with an error.
func (s *Store) update(ctx context.Context) (all []news, err error) {
	s.syncing.Lock()
	defer s.syncing.Unlock()
	began := time.Since(s.breakers.began)
	if err = s.follow(ctx); err == nil {
		s.failed.Store(nil)
		s.synced.Store(int64(began))
	} else {
		s.failed.Store(&err)
	}
	all, s.news = s.news, nil
	return all, err
}

// follow does to the copy what has changed in the list.
//
// REQUIRES: s.syncing.
func (s *Store) follow(ctx context.Context) error {
	l := s.layout.Load()
	for {
		gaveBack := "0"
		if s.refusals.gaveBack.Swap(false) {
			gaveBack = "1"
		}
		c := call{command: command{script: l.scripts.sync, keys: s.syncKeys(), args: []string{s.have, s.node, gaveBack}}}
		sent := s.mirror.now()
		s.send(ctx, l, []*call{&c})
		if c.err == nil && len(c.data) < syncBytes {
			c.err = errAnswer
		}
		if c.err != nil {
			if gaveBack == "1" {
				s.refusals.gaveBack.Store(true)
			}
			return c.err
		}
		s.mirror.at(readUint56(c.data), sent, s.mirror.now())
		s.refusals.sync(sent, readUint56(c.data[syncBytes-uint56:]), s.mirror.ahead.Load())
		rest := []byte(c.data[uint56:syncBytes])
		s.nodes.Store(int64(binary.BigEndian.Uint32(rest)))
		newest := fmt.Sprintf("%d-%d", binary.BigEndian.Uint64(rest[5:]), binary.BigEndian.Uint64(rest[13:]))
		if state := rest[4]; state != syncChanged {
			return s.reload(ctx, l, newest, state == syncLost)
		}
		if newest == s.have {
			return s.relist(ctx, l)
		}
		if err := eachListed(c.data[syncBytes:], s.change); err != nil {
			return err
		}
		s.have = newest
	}
}

// relist writes the bans that could not be added to the list when they began.
func (s *Store) relist(ctx context.Context, l *layout) error {
	if !s.unlisted.CompareAndSwap(true, false) {
		return nil
	}
	err := s.reload(ctx, l, s.have, true)
	if err != nil {
		s.unlisted.Store(true)
	}
	return err
}

// change does to the copy what the list says.
func (s *Store) change(of, detail string) {
	switch b, ok := s.mirror.read(of, detail); {
	case !ok:
	case detail == "":
		s.remove(b)
	case s.mirror.add(&b):
		s.news = append(s.news, news{ban: b})
	}
}

// remove removes a ban from the copy.
//
// REQUIRES: s.syncing.
func (s *Store) remove(b ban.Ban) {
	if s.mirror.remove(&b) {
		s.news = append(s.news, news{b, true})
	}
}

// reload reads the whole list. If changes were lost, bans that the copy has are written again;
// else those that are not in the list have ended.
//
// REQUIRES: s.syncing.
func (s *Store) reload(ctx context.Context, l *layout, newest string, lost bool) error {
	known := make(map[string]bool)
	first := s.have == ""
	calls := make([]*call, listParts)
	for i := range calls {
		calls[i] = &call{command: command{script: l.scripts.page, keys: s.listKeys(uint32(i))[:2]}}
	}
	if err := s.exchange(ctx, l, calls); err != nil {
		return err
	}
	for _, c := range calls {
		err := eachListed(c.data, func(of, detail string) {
			known[of] = true
			if b, ok := s.mirror.read(of, detail); ok && s.mirror.add(&b) && !first {
				s.news = append(s.news, news{ban: b})
			}
		})
		if err != nil {
			return err
		}
	}
	if !first {
		if err := s.settleBans(ctx, l, known, lost); err != nil {
			return err
		}
	}
	s.have = newest
	return nil
}

// settleBans is about the bans of the copy that are not known in Redis: they were ended, or lost and are written again.
func (s *Store) settleBans(ctx context.Context, l *layout, known map[string]bool, lost bool) error {
	var bans []ban.Ban
	for b := range s.mirror.table.All(s.mirror.server() * 1000) {
		rl := l.byID(b.Rule)
		if rl == nil {
			continue
		}
		name := rl.listed + string(b.Key)
		switch _, unwritten := s.unwritten.Load(name); {
		case known[name] && !(lost && unwritten):
		case lost:
			b.Memory = rl.memory
			bans = append(bans, b)
		default:
			s.remove(b)
		}
	}
	var errs []error
	for some := range slices.Chunk(bans, reassertBatch) {
		errs = append(errs, s.reassert(ctx, l, some))
	}
	return errors.Join(errs...)
}

// reassert writes bans to the list, and those that were not ended since to their records. A record that
// could not be written is written the next time, unless it is of another form.
func (s *Store) reassert(ctx context.Context, l *layout, bans []ban.Ban) error {
	listings, records := make([]*call, len(bans)), make(map[string]*call)
	for i := range bans {
		listings[i] = s.listing(l, l.byID(bans[i].Rule), &bans[i], bans[i].Since/1000, true)
	}
	listed := s.exchange(ctx, l, listings)
	for i, c := range listings {
		if c.err == nil && c.data == banEnded {
			s.remove(bans[i])
			continue
		}
		record := s.banCall(l, l.byID(bans[i].Rule), &bans[i])
		records[c.args[0]] = &record
	}
	written := s.exchange(ctx, l, slices.Collect(maps.Values(records)))
	for name, c := range records {
		s.unwritten.Delete(name)
		if foreign := codeIs(c.err, "NEWERFORM") || codeIs(c.err, "WRONGTYPE"); c.err != nil && !foreign {
			s.unwritten.Store(name, true)
			s.unlisted.Store(true) // relist comes back to it
		}
	}
	return errors.Join(listed, written)
}

// eachListed calls f for each entry of a part of the list, or of its changes.
func eachListed(entries string, f func(of, detail string)) error {
	all, err := parts(entries)
	if err != nil || len(all)%2 > 0 {
		return errAnswer
	}
	for entry := range slices.Chunk(all, 2) {
		f(entry[0], entry[1])
	}
	return nil
}
