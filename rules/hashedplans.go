package rules

import (
	"sync"
	"sync/atomic"

	"github.com/lately-go/lately/internal/event/intake"
	"github.com/lately-go/lately/internal/file/fileperm"
	"github.com/lately-go/lately/match"
	"github.com/lately-go/lately/ratelimit"
)

// A hashedPlans is plans whose keys are values of a hashed field: a table of their digests. These depend on a key, so the file
// is read again when that changes. What the file contains is in memory only while it is read.
type hashedPlans struct {
	algorithm ratelimit.Algorithm
	limit     ratelimit.Limit // as the numbers are parsed

	mu      sync.Mutex // guards reading
	digests atomic.Pointer[digestedPlans]
}

// A digestedPlans is a table of digests under a key.
type digestedPlans struct {
	planLines
	key [32]byte
}

// alike reports whether h and o, which may be nil, read a file alike.
func (h *hashedPlans) alike(o *hashedPlans) bool {
	if h == nil || o == nil {
		return h == o
	}
	return h.algorithm == o.algorithm && h.limit == o.limit
}

// seal replaces the keys of t, which was just read, by digests, if they are values of a hashed field: under the key of the
// tables before, or at first that of the process.
func (t *planTable) seal(before []*planTable) {
	if t.hashed == nil {
		return
	}
	key := intake.ProcessKey()
	for _, known := range before {
		if known.hashed != nil {
			key = known.hashed.digests.Load().key
		}
	}
	t.hashed.digests.Store(t.digested(key))
	clear(t.text)
	t.text, t.slots = nil, nil
}

// digested returns the digests of the keys of t.
func (t *planTable) digested(key [32]byte) *digestedPlans {
	in := intake.New([]match.Source{{Field: "key", Hash: true}}, key)
	d := &digestedPlans{key: key}
	d.count, d.slots = t.count, make([]planSlot, len(t.slots))
	for _, slot := range t.slots {
		if slot.n == 0 {
			continue
		}
		at, digest := len(d.text), in.Digest(string(planKey(t.text[slot.at:])))
		d.text = append(append(d.text, digest...), ' ')
		place, _ := d.find([]byte(digest))
		*place = planSlot{uint32(at), slot.n}
	}
	return d
}

// Rekey reads the file again, unless it has the digests under key or its keys are no secrets. use puts the digests in force.
func (t *planTable) Rekey(key [32]byte) (use func(), err error) {
	h := t.hashed
	if h == nil {
		return func() {}, nil
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.digests.Load().key == key {
		return func() {}, nil
	}
	data, err := fileperm.ReadFile(t.path, maxPlanFile)
	if err != nil {
		return nil, err
	}
	defer clear(data)
	fresh := &planTable{name: t.name, version: t.version, atMost: t.atMost, hashed: h}
	if errs := fresh.parse(data, likeDefault(h.algorithm, h.limit)); len(errs) > 0 {
		return nil, errs
	}
	d := fresh.digested(key)
	return func() { h.digests.Store(d) }, nil
}
