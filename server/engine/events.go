package engine

import (
	"encoding/json"
	"slices"
	"sync"
	"sync/atomic"
	"time"
	"unicode/utf8"

	"github.com/lately-go/lately/ratelimit"
)

// An EventType says what an [Event] is about.
type EventType string

// The types of events.
const (
	Banned       EventType = "ban"   // a ban began, or was added
	Lifted       EventType = "lift"  // a ban was lifted
	Heated       EventType = "hot"   // a key became hot
	RulesChanged EventType = "rules" // other rules are in force
)

// An Event is what subscribers are told. JSON is what it looks like on every wire.
type Event struct {
	Type   EventType            `json:"type"`
	Time   time.Time            `json:"time"`
	Ban    *ratelimit.BanRecord `json:"ban,omitempty"`
	Rule   string               `json:"rule,omitempty"` // of what was lifted or became hot
	Key    []string             `json:"key,omitempty"`
	Base64 [][]byte             `json:"key_base64,omitempty"` // in JSON: the key as it is, where key shows U+FFFD for what is not UTF-8
	Until  *time.Time           `json:"until,omitempty"`      // how long it stays hot
	JSON   []byte               `json:"-"`
}

// bytesOf returns the values of a key that is not UTF-8 throughout, and nil for
// others.
func bytesOf(key []string) (values [][]byte) {
	if !slices.ContainsFunc(key, func(v string) bool { return !utf8.ValidString(v) }) {
		return nil
	}
	for _, v := range key {
		values = append(values, []byte(v))
	}
	return values
}

// A Subscription is one who is told events, in order, from when it began. One who
// does not read as fast as events come is cut off, and told nothing more: C is
// closed, and Slow reports true. He then asks for the state and subscribes anew.
type Subscription struct {
	C    <-chan Event
	c    chan Event
	hub  *hub
	slow atomic.Bool
}

// subscriptionRoom is how many events wait for a subscriber.
const subscriptionRoom = 1024

// Slow reports whether the subscription ended because its reader was too slow.
func (s *Subscription) Slow() bool { return s.slow.Load() }

// Close ends the subscription.
func (s *Subscription) Close() { s.hub.remove(s) }

// A hub tells events to subscribers. It never waits for one.
type hub struct {
	mu     sync.Mutex
	all    map[*Subscription]struct{}
	closed bool
	told   atomic.Uint64
	cut    atomic.Uint64
}

// Subscribe begins a subscription to all events.
func (e *Engine) Subscribe() *Subscription { return e.hub.add() }

func (h *hub) add() *Subscription {
	c := make(chan Event, subscriptionRoom)
	s := &Subscription{C: c, c: c, hub: h}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closed {
		close(c)
		return s
	}
	if h.all == nil {
		h.all = make(map[*Subscription]struct{})
	}
	h.all[s] = struct{}{}
	return s
}

func (h *hub) remove(s *Subscription) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if _, ok := h.all[s]; ok {
		delete(h.all, s)
		close(s.c)
	}
}

// publish tells ev to those who subscribed before. It costs next to nothing when
// there is nobody.
func (h *hub) publish(ev Event) {
	h.told.Add(1)
	if h.len() == 0 {
		return
	}
	ev.Time = ev.Time.UTC() // as the times of bans
	ev.Base64 = bytesOf(ev.Key)
	var err error
	if ev.JSON, err = json.Marshal(ev); err != nil {
		ev.JSON = []byte(`{"type":"` + string(ev.Type) + `"}`)
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	for s := range h.all {
		select {
		case s.c <- ev:
		default:
			s.slow.Store(true)
			h.cut.Add(1)
			delete(h.all, s)
			close(s.c)
		}
	}
}

func (h *hub) close() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.closed = true
	for s := range h.all {
		delete(h.all, s)
		close(s.c)
	}
}

func (h *hub) len() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return len(h.all)
}
