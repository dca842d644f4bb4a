package engine

import (
	"iter"
	"strconv"
	"time"

	"github.com/lately-go/lately/ratelimit"
)

const (
	// keepEndedBans is for how long the end of a ban by hand holds against events that are older. Followed
	// logs must have been read up to it by then.
	keepEndedBans = 24 * time.Hour

	// maxEndedBans is how many of them are kept, the newest ones.
	maxEndedBans = 1 << 16
)

// endedBans is the bans that were ended by hand. After a crash, the lines of a log that began such a ban
// may be judged again, and must not begin it again. It is not safe for concurrent use.
type endedBans struct {
	ends  map[string]time.Time // by keyOf
	order []endedBan           // in the order of add; one that was added again since is out of date
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
		b.ends = make(map[string]time.Time)
	}
	key := keyOf(ended.Rule, ended.Key)
	if !b.ends[key].Before(ended.End) {
		return
	}
	b.ends[key] = ended.End
	b.order = append(b.order, ended)
	for len(b.order) > maxEndedBans || ended.End.Sub(b.order[0].End) > keepEndedBans {
		b.drop()
	}
}

// drop forgets the one that was added first.
func (b *endedBans) drop() {
	first := b.order[0]
	b.order = b.order[1:]
	if key := keyOf(first.Rule, first.Key); b.ends[key].Equal(first.End) {
		delete(b.ends, key)
	}
}

// end returns when a ban that a rule has begun at an earlier time was ended by hand.
func (b *endedBans) end(r *ratelimit.BanRecord) (end time.Time, ok bool) {
	if len(b.ends) == 0 {
		return end, false
	}
	end = b.ends[keyOf(r.Rule, r.Key)]
	return end, !r.Since.After(end)
}

// since returns those that have ended no longer than keepEndedBans before now.
func (b *endedBans) since(now time.Time) iter.Seq[endedBan] {
	return func(yield func(endedBan) bool) {
		for _, ended := range b.order {
			if now.Sub(ended.End) <= keepEndedBans && !yield(ended) {
				return
			}
		}
	}
}
