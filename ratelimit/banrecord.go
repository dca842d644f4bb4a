package ratelimit

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/lately-go/lately/internal/ban"
)

// A BanRecord is one ban, for listing, adding, export and import. As JSON it is
// an object:
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

	// Since is the start of the ban. A ban that is added takes effect at once, for
	// any Since; zero means now.
	Since time.Time

	// Until is the end of the ban.
	Until time.Time

	// Count is the number of remembered bans of the key that the rule began. The length
	// of the next one depends on it. Bans added by hand do not count. The maximum is
	// 33,554,431.
	Count uint64

	// Reason is the reason, in at most 256 bytes of UTF-8.
	Reason string

	// Source is who began the ban: "rule" for the rule, or else at most 64 bytes of
	// UTF-8; "" means "manual".
	Source string
}

// banJSON is the JSON of a BanRecord.
type banJSON struct {
	Rule   string    `json:"rule"`
	Key    []string  `json:"key,omitempty"`
	Base64 [][]byte  `json:"key_base64,omitempty"`
	Since  time.Time `json:"since,omitzero"`
	Until  time.Time `json:"until"`
	Count  uint64    `json:"count,omitzero"`
	Reason string    `json:"reason,omitzero"`
	Source string    `json:"source,omitzero"`
}

// MarshalJSON returns r as a JSON object. It is an error if r is not valid.
func (r BanRecord) MarshalJSON() ([]byte, error) {
	if err := r.validate(); err != nil {
		return nil, err
	}
	j := banJSON{Rule: r.Rule, Since: r.Since, Until: r.Until.UTC(), Count: r.Count, Reason: r.Reason, Source: r.Source}
	if !j.Since.IsZero() {
		j.Since = j.Since.UTC()
	}
	if slices.ContainsFunc(r.Key, func(v string) bool { return !utf8.ValidString(v) }) {
		for _, v := range r.Key {
			j.Base64 = append(j.Base64, []byte(v))
		}
	} else {
		j.Key = r.Key
	}
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	err := e.Encode(&j)
	return b.Bytes(), err
}

// UnmarshalJSON reads what MarshalJSON writes. It is an error if a field is unknown, if a
// value is missing, or if one is out of range.
func (r *BanRecord) UnmarshalJSON(b []byte) error {
	if !utf8.Valid(b) {
		return errors.New("not UTF-8: a key with other bytes must be given as key_base64")
	}
	var j banJSON
	d := json.NewDecoder(bytes.NewReader(b))
	d.DisallowUnknownFields()
	if err := d.Decode(&j); err != nil {
		if name, ok := strings.CutPrefix(err.Error(), "json: unknown field "); ok {
			return fmt.Errorf("field: %s: must be rule, key or key_base64, since, until, count, reason or source", name)
		}
		return err
	}
	if len(j.Key) > 0 && len(j.Base64) > 0 {
		return errors.New("key: key_base64 is there too: must be one of them")
	}
	for _, v := range j.Base64 {
		j.Key = append(j.Key, string(v))
	}
	*r = BanRecord{Rule: j.Rule, Key: j.Key, Since: j.Since, Until: j.Until, Count: j.Count, Reason: j.Reason, Source: j.Source}
	return r.validate()
}

// validate returns an error that names the first value that no store takes.
func (r *BanRecord) validate() error {
	switch {
	case r.Rule == "":
		return errors.New("rule: missing: must be the name of a rule")
	case !utf8.ValidString(r.Rule):
		return fmt.Errorf("rule: %q: must be UTF-8", r.Rule)
	case len(r.Key) == 0:
		return errors.New("key: missing: must be a value for each field of the rule's key")
	case r.Until.IsZero():
		return errors.New("until: missing: must be the end of the ban")
	case r.Until.UTC().Year() > 9999 || r.Since.UTC().Year() < 0:
		return errors.New("since or until: out of range: must be in the years 0 to 9999")
	case !r.Since.Before(r.Until):
		return fmt.Errorf("until: %s: must be after since, %s", formatTime(r.Until), formatTime(r.Since))
	case len(r.Reason) > ban.MaxReason || !utf8.ValidString(r.Reason):
		return fmt.Errorf("reason: %d bytes: must be at most %d bytes of UTF-8", len(r.Reason), ban.MaxReason)
	case len(r.Source) > ban.MaxSource || !utf8.ValidString(r.Source):
		return fmt.Errorf("source: %d bytes: must be at most %d bytes of UTF-8", len(r.Source), ban.MaxSource)
	}
	size := 0
	for i, v := range r.Key {
		if v == "" {
			return fmt.Errorf("key: value %d: missing: must not be empty", i+1)
		}
		size += len(v)
	}
	if size > ban.MaxKey {
		return fmt.Errorf("key: %d bytes: must be at most %d", size, ban.MaxKey)
	}
	return nil
}

// formatTime returns a time as BanRecords have it in JSON.
func formatTime(t time.Time) string { return t.UTC().Format(time.RFC3339Nano) }
