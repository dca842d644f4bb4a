package ban

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

// A Record is a ban outside of a Table. It has the fields of ratelimit.BanRecord, which
// documents them and its JSON.
type Record struct {
	Rule   string
	Key    []string
	Since  time.Time
	Until  time.Time
	Count  uint64
	Reason string
	Source string
}

// recordJSON is the JSON of a Record.
type recordJSON struct {
	Rule   string    `json:"rule"`
	Key    []string  `json:"key,omitempty"`
	Base64 [][]byte  `json:"key_base64,omitempty"`
	Since  time.Time `json:"since,omitzero"`
	Until  time.Time `json:"until"`
	Count  uint64    `json:"count,omitzero"`
	Reason string    `json:"reason,omitzero"`
	Source string    `json:"source,omitzero"`
}

// AppendJSON appends r as a line of JSON. It is an error if r is not valid.
func (r *Record) AppendJSON(dst []byte) ([]byte, error) {
	if err := r.Validate(); err != nil {
		return dst, err
	}
	j := recordJSON{Rule: r.Rule, Since: r.Since, Until: r.Until.UTC(), Count: r.Count, Reason: r.Reason, Source: r.Source}
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

// UnmarshalJSON reads what AppendJSON writes. It is an error if a field is unknown, if a
// value is missing, or if one is out of range.
func (r *Record) UnmarshalJSON(b []byte) error {
	if !utf8.Valid(b) {
		return errors.New("not UTF-8: a key with other bytes must be given as key_base64")
	}
	var j recordJSON
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
	*r = Record{Rule: j.Rule, Key: j.Key, Since: j.Since, Until: j.Until, Count: j.Count, Reason: j.Reason, Source: j.Source}
	return r.Validate()
}

// Validate returns an error that names the first value that no store takes.
func (r *Record) Validate() error {
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
		return fmt.Errorf("until: %s: must be after since, %s", FormatTime(r.Until), FormatTime(r.Since))
	case len(r.Reason) > maxReason || !utf8.ValidString(r.Reason):
		return fmt.Errorf("reason: %d bytes: must be at most %d bytes of UTF-8", len(r.Reason), maxReason)
	case len(r.Source) > maxSource || !utf8.ValidString(r.Source):
		return fmt.Errorf("source: %d bytes: must be at most %d bytes of UTF-8", len(r.Source), maxSource)
	}
	size := 0
	for i, v := range r.Key {
		if v == "" {
			return fmt.Errorf("key: value %d: missing: must not be empty", i+1)
		}
		size += len(v)
	}
	if size > MaxKey {
		return fmt.Errorf("key: %d bytes: must be at most %d", size, MaxKey)
	}
	return nil
}

// FormatTime returns a time as records have it in JSON.
func FormatTime(t time.Time) string { return t.UTC().Format(time.RFC3339Nano) }
