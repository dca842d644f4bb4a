package ban

import (
	"sync"

	"github.com/lately-go/lately/internal/counting/keytable"
)

// texts holds the reasons and sources of bans, each pair once.
type texts struct {
	mu    sync.Mutex
	ids   map[text]uint32
	texts []sharedText // by their numbers; that of none is 0
	free  []uint32     // numbers in no use
}

type text struct{ reason, source string }

type sharedText struct {
	text
	bans int
	paid *keytable.Budget
}

// textBytes bounds what a text takes besides its bytes, in the map and in the list.
const textBytes = 200

func (x text) bytes() int64 { return textBytes + int64(len(x.reason)+len(x.source)) }

// use returns the number of x for one more ban. ok is false if the budget has no memory
// for it.
func (t *texts) use(x text, budget *keytable.Budget) (id uint32, ok bool) {
	if x == (text{}) {
		return 0, true
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if id, ok = t.ids[x]; ok {
		t.texts[id].bans++
		return id, true
	}
	if !budget.Take(x.bytes(), 0) {
		return 0, false
	}
	if t.ids == nil {
		t.ids, t.texts = make(map[text]uint32), make([]sharedText, 1)
	}
	if n := len(t.free); n > 0 {
		id, t.free = t.free[n-1], t.free[:n-1]
	} else {
		id, t.texts = uint32(len(t.texts)), append(t.texts, sharedText{})
	}
	t.ids[x], t.texts[id] = id, sharedText{x, 1, budget}
	return id, true
}

// of returns the text of an origin, "" for one without.
func (t *texts) of(o origin) text {
	id := o.text()
	if id == 0 {
		return text{}
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.texts[id].text
}

// release notes that a ban has that origin no more.
func (t *texts) release(o origin) {
	id := o.text()
	if id == 0 {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	x := &t.texts[id]
	if x.bans--; x.bans == 0 {
		delete(t.ids, x.text)
		x.paid.Give(x.bytes())
		*x = sharedText{}
		t.free = append(t.free, id)
	}
}
