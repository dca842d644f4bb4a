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
)

// A BanRecord is one ban, as it is listed, added, exported and imported. As
// JSON it is an object:
//
//	{"rule":"login","key":["192.0.2.1","root"],"since":"2026-01-02T03:04:05Z",
//	"until":"2026-01-02T03:14:05Z","count":2,"reason":"more than 20 refusals in 5m","source":"rule"}
//
// A key that is not UTF-8 stands in "key_base64" instead, each value in base64.
type BanRecord struct {
	// Rule is the name of the rule under which the key is banned.
	Rule string

	// Key is the values of the rule's key, in the order of its fields, as
	// the rule counts them. A value is any bytes but none.
	Key []string

	// Since is when the ban began, and Until when it ends. A ban that is
	// added holds from then on, whatever Since says; the zero Since is then.
	Since, Until time.Time

	// Count is how many bans of the key the rule has begun so far, as far as
	// they are remembered. It says how long the next one is. A ban that is
	// added by hand is none of them. What is above 33,554,431 is taken as that.
	Count uint64

	// Reason says why, in at most 256 bytes of UTF-8.
	Reason string

	// Source says who: "rule" for a ban that the rule began, and for any
	// other at most 64 bytes of UTF-8; "" is "manual".
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

const banFields = "rule, key or key_base64, since, until, count, reason and source"

// MarshalJSON returns r as a JSON object. It is an error if r is not valid.
func (r BanRecord) MarshalJSON() ([]byte, error) { return r.appendJSON(nil) }

// appendJSON appends r as a line of JSON.
func (r *BanRecord) appendJSON(dst []byte) ([]byte, error) {
	if err := r.validate(); err != nil {
		return dst, err
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
	if err := e.Encode(&j); err != nil {
		return dst, err
	}
	return append(dst, b.Bytes()...), nil
}

// UnmarshalJSON reads what MarshalJSON writes. It is an error if there is a
// field that is not known, a value missing, or one that is out of range.
func (r *BanRecord) UnmarshalJSON(b []byte) error {
	if !utf8.Valid(b) {
		return errors.New(`there are bytes that are not UTF-8; a key that has some is written as "key_base64"`)
	}
	var j banJSON
	d := json.NewDecoder(bytes.NewReader(b))
	d.DisallowUnknownFields()
	if err := d.Decode(&j); err != nil {
		if name, ok := strings.CutPrefix(err.Error(), "json: unknown field "); ok {
			return fmt.Errorf("field %s is not known; allowed are %s", name, banFields)
		}
		return err
	}
	if len(j.Key) > 0 && len(j.Base64) > 0 {
		return errors.New("there are both key and key_base64; allowed is one of them")
	}
	for _, v := range j.Base64 {
		j.Key = append(j.Key, string(v))
	}
	*r = BanRecord{Rule: j.Rule, Key: j.Key, Since: j.Since, Until: j.Until, Count: j.Count, Reason: j.Reason, Source: j.Source}
	return r.validate()
}

// validate returns an error that names the first value which no store takes.
func (r *BanRecord) validate() error {
	switch {
	case r.Rule == "":
		return errors.New("rule is missing; a ban is one under a rule")
	case !utf8.ValidString(r.Rule):
		return fmt.Errorf("rule is %q, which is not UTF-8", r.Rule)
	case len(r.Key) == 0:
		return errors.New("key is missing; allowed is a list with a value for each field of the rule's key")
	case r.Until.IsZero():
		return errors.New("until is missing; every ban has an end")
	case r.Until.UTC().Year() > 9999 || r.Since.UTC().Year() < 0:
		return errors.New("since or until is out of range; allowed are the years 0 to 9999")
	case !r.Since.Before(r.Until):
		return fmt.Errorf("until is %s; allowed is a time after since, %s", jsonTime(r.Until), jsonTime(r.Since))
	case len(r.Reason) > maxReason || !utf8.ValidString(r.Reason):
		return fmt.Errorf("reason has %d bytes; allowed is at most %d bytes of UTF-8", len(r.Reason), maxReason)
	case len(r.Source) > maxSource || !utf8.ValidString(r.Source):
		return fmt.Errorf("source has %d bytes; allowed is at most %d bytes of UTF-8", len(r.Source), maxSource)
	}
	size := 0
	for i, v := range r.Key {
		if v == "" {
			return fmt.Errorf("value %d of key is empty; an event without it is not judged by a rule", i+1)
		}
		size += len(v)
	}
	if size > maxBanKey {
		return fmt.Errorf("key has %d bytes; allowed is at most %d", size, maxBanKey)
	}
	return nil
}

// jsonTime writes a time as JSON has it.
func jsonTime(t time.Time) string { return t.UTC().Format(time.RFC3339Nano) }
