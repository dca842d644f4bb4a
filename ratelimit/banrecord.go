package ratelimit

import (
	"time"

	"github.com/lately-go/lately/internal/ban"
)

// A BanRecord is one ban, as it is listed, added, exported and imported. As
// JSON it is an object:
//
//	{"rule":"login","key":["192.0.2.1","root"],"since":"2026-01-02T03:04:05Z",
//	"until":"2026-01-02T03:14:05Z","count":2,"reason":"more than 20 refusals in 5m","source":"rule"}
//
// A key that is not UTF-8 is in "key_base64" instead, each value in base64.
type BanRecord struct {
	// Rule is the name of the rule under which the key is banned.
	Rule string

	// Key is the values of the rule's key, in the order of its fields, as
	// the rule counts them. A value must not be empty.
	Key []string

	// Since is when the ban began. A ban that is added holds at once, whatever Since is;
	// the zero Since means the present.
	Since time.Time

	// Until is when the ban ends.
	Until time.Time

	// Count is how many bans of the key the rule has begun that are remembered. The
	// length of the next one depends on it. Bans added by hand do not count. The maximum
	// is 33,554,431.
	Count uint64

	// Reason says why, in at most 256 bytes of UTF-8.
	Reason string

	// Source says who began the ban: "rule" if the rule did, and else at most 64 bytes of
	// UTF-8; "" means "manual".
	Source string
}

// MarshalJSON returns r as a JSON object. It is an error if r is not valid.
func (r BanRecord) MarshalJSON() ([]byte, error) { return (*ban.Record)(&r).AppendJSON(nil) }

// UnmarshalJSON reads what MarshalJSON writes. It is an error if a field is unknown, if a
// value is missing, or if one is out of range.
func (r *BanRecord) UnmarshalJSON(b []byte) error { return (*ban.Record)(r).UnmarshalJSON(b) }

// A BanQuery selects a page of the bans that hold, for [BanList.Page].
type BanQuery struct {
	// Rule is the rule of the bans; "" means all rules.
	Rule string

	// Text must be in a value of the key or in the reason; "" means any.
	Text string

	// Limit is how many bans are returned at most.
	Limit int

	// Cursor is BanPage.Next of the page before; "" means the first page.
	Cursor string
}

// A BanPage is what [BanList.Page] returns.
type BanPage struct {
	Bans  []BanRecord
	Total int    // how many bans the query selects, on all pages
	Next  string // the cursor of the next page; "" if there is none
}
