package hotlist

import (
	"encoding/json"
	"strconv"
	"sync"
	"time"

	"github.com/lately-go/lately/api"
)

// An Update is what changed from one version to another.
type Update struct {
	instance, rule string
	from, version  uint64
	reset, empty   bool
	made           time.Time

	encode             sync.Once
	hot, cold, changed []Hot // until it is encoded
	parts              [][]byte
}

// Parts returns the update as one or more messages, each the JSON of an [api.HotUpdate].
func (u *Update) Parts() [][]byte { return u.parts }

// partBytes is about the length at which a message ends and the next one begins.
const partBytes = 64 << 10

// write makes the messages of u.
func (u *Update) write() {
	p := part{u: u, first: true}
	for i := range u.hot {
		p.add(0, u.hot[i].onWire(u.made, u.hot[i].Changed))
	}
	for i := range u.cold {
		p.add(1, api.RuleKey{Rule: u.cold[i].Rule, Key: u.cold[i].Key})
	}
	for i := range u.changed {
		p.add(2, api.RuleKey{Rule: u.changed[i].Rule, Key: u.changed[i].Key})
	}
	p.end(false)
	u.hot, u.cold, u.changed = nil, nil, nil
}

// A part is a message that is being made.
type part struct {
	u     *Update
	first bool
	lists [3][]byte // the elements of hot, cold and changed, joined by commas
}

// add adds an element to a list, or to that of another part if this one is full.
func (p *part) add(list int, element any) {
	text, err := json.Marshal(element)
	if err != nil {
		return // a time after the year 9999
	}
	if n := len(p.lists[0]) + len(p.lists[1]) + len(p.lists[2]); n > 0 && n+len(text) > partBytes {
		p.end(true)
	}
	if len(p.lists[list]) > 0 {
		p.lists[list] = append(p.lists[list], ',')
	}
	p.lists[list] = append(p.lists[list], text...)
}

// end ends the message, and says whether there are more.
func (p *part) end(more bool) {
	u := p.u
	b := make([]byte, 0, 256+len(u.rule)+len(p.lists[0])+len(p.lists[1])+len(p.lists[2]))
	b = append(append(b, `{"instance":"`...), u.instance...)
	b = strconv.AppendUint(append(b, `","from":`...), u.from, 10)
	b = strconv.AppendUint(append(b, `,"version":`...), u.version, 10)
	if u.rule != "" {
		rule, _ := json.Marshal(u.rule) // a string has no errors
		b = append(append(b, `,"rule":`...), rule...)
	}
	b = strconv.AppendBool(append(b, `,"reset":`...), u.reset && p.first)
	b = strconv.AppendBool(append(b, `,"more":`...), more)
	for i, name := range []string{"hot", "cold", "changed"} {
		b = append(append(append(b, `,"`...), name...), `":[`...)
		b = append(append(b, p.lists[i]...), ']')
		p.lists[i] = p.lists[i][:0]
	}
	u.parts = append(u.parts, append(b, '}'))
	p.first = false
}
