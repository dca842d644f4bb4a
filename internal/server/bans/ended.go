package bans

import (
	"iter"
	"slices"
	"strconv"
	"time"

	"github.com/lately-go/lately/ratelimit"
)

// maxEndedBans is how many ended bans are kept, the newest ones.
const maxEndedBans = 1 << 16

// endedBans is the bans that were ended by hand according to the ban journal. The lines of a log since the snapshot are
// judged again after a crash: those that began such a ban must not begin it again. It is not safe for concurrent
// use.
type endedBans struct {
	ends map[string][]time.Time // by keyOf, in the order of add
	all  []endedBan             // in the order of add; some of them are in ends no more
}

// An endedBan is the end of a ban by hand.
type endedBan struct {
	Rule string    `json:"rule"`
	Key  []string  `json:"key"`
	End  time.Time `json:"end"`
}

// keyOf returns what identifies the key of a rule.
func keyOf(rule string, key []string) string {
	text := rule
	for _, value := range key {
		text += "\x00" + strconv.Itoa(len(value)) + "\x00" + value
	}
	return text
}

// add notes that a ban was ended.
func (b *endedBans) add(ended endedBan) {
	if b.ends == nil {
		b.ends = make(map[string][]time.Time)
	}
	key := keyOf(ended.Rule, ended.Key)
	b.ends[key] = append(b.ends[key], ended.End)
	if b.all = append(b.all, ended); len(b.all) > maxEndedBans {
		b.remove(keyOf(b.all[0].Rule, b.all[0].Key), b.all[0].End)
		b.all = b.all[1:]
	}
}

// take returns when a ban that a rule has begun was ended by hand, if it was, and removes that: the line that began the ban
// was judged again.
func (b *endedBans) take(r *ratelimit.BanRecord) (end time.Time, ok bool) {
	if len(b.ends) == 0 {
		return end, false
	}
	key := keyOf(r.Rule, r.Key)
	for _, end := range b.ends[key] {
		if !r.Since.After(end) {
			b.remove(key, end)
			return end, true
		}
	}
	return end, false
}

func (b *endedBans) remove(key string, end time.Time) {
	ends := b.ends[key]
	if i := slices.IndexFunc(ends, end.Equal); i >= 0 {
		ends = slices.Delete(ends, i, i+1)
	}
	if b.ends[key] = ends; len(ends) == 0 {
		delete(b.ends, key)
	}
}

// left returns those that were not taken.
func (b *endedBans) left() iter.Seq[endedBan] {
	return func(yield func(endedBan) bool) {
		for _, ended := range b.all {
			if slices.ContainsFunc(b.ends[keyOf(ended.Rule, ended.Key)], ended.End.Equal) && !yield(ended) {
				return
			}
		}
	}
}
