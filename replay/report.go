package replay

import (
	"encoding/hex"
	"encoding/json"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/lately-go/lately/ratelimit"
)

// A Report is what a replay found. Encoded as JSON it is the --json report;
// fields that do not apply are left out.
type Report struct {
	Files   []string     `json:"files"`
	Format  string       `json:"format"` // several, if files differ, joined by commas
	Lines   int64        `json:"lines"`  // lines = parsed + skipped + bad
	Parsed  int64        `json:"parsed"`
	Skipped int64        `json:"skipped"` // ordinary lines of other kinds, such as logins that did not fail
	Bad     int64        `json:"bad"`
	First   *json.Number `json:"first,omitempty"` // epoch seconds
	Last    *json.Number `json:"last,omitempty"`

	// ResolutionSeconds is the precision at which times were judged, and
	// LogResolutionSeconds that of the log. They differ if Config.Resolution is set.
	ResolutionSeconds    float64 `json:"resolution_seconds"`
	LogResolutionSeconds float64 `json:"log_resolution_seconds"`

	ElapsedSeconds float64      `json:"elapsed_seconds"`
	Top            []TopKey     `json:"top"`
	Fits           []Fit        `json:"fits,omitempty"` // which limits would fit
	Rules          []RuleReport `json:"rules"`
	BadLines       []BadLine    `json:"bad_lines,omitempty"`
	Jumps          []Jump       `json:"jumps,omitempty"`
	AssumedYears   []FileYear   `json:"assumed_years,omitempty"`
	Problems       []string     `json:"problems,omitempty"` // with files, as sentences

	Events   int64         `json:"-"` // parsed lines make one event, or several if they hold a list
	Keys     int           `json:"-"` // distinct keys of the field that Top counts
	Key      string        `json:"-"` // that field
	Timeline []int64       `json:"-"` // events in equal parts of the time from First to Last
	Bar      time.Duration `json:"-"` // the length of each of these parts
	Start    time.Time     `json:"-"` // First
	End      time.Time     `json:"-"` // Last
}

// A Key is a counted key: bytes, or several for a composite key.
type Key []string

// Keyed is a key in a report. A key that is valid UTF-8 is that text; any other
// has each byte from 0x80 up as U+0080 to U+00FF, and its bytes in hex beside
// it. A composite key is an array.
type Keyed struct {
	Key Key `json:"-"`
}

type keyJSON struct {
	Key any `json:"key"`
	Hex any `json:"key_hex,omitempty"`
}

func (k Key) json() keyJSON {
	texts, hexes, valid := make([]string, len(k)), make([]string, len(k)), true
	for i, part := range k {
		hexes[i] = hex.EncodeToString([]byte(part))
		valid = valid && utf8.ValidString(part)
	}
	for i, part := range k {
		texts[i] = part
		if !valid {
			texts[i] = latin1(part)
		}
	}
	out := keyJSON{Key: texts, Hex: hexes}
	if len(k) == 1 {
		out = keyJSON{Key: texts[0], Hex: hexes[0]}
	}
	if valid {
		out.Hex = nil
	}
	return out
}

// latin1 returns the bytes of s as the characters U+0000 to U+00FF, in UTF-8.
func latin1(s string) string {
	var b strings.Builder
	for i := range len(s) {
		b.WriteRune(rune(s[i]))
	}
	return b.String()
}

// A TopKey is one of the busiest keys.
type TopKey struct {
	Keyed
	Count int64
	Peaks map[string]int64 // largest count in any window of 1s, 10s, ...
}

// MarshalJSON writes key, count and peaks.
func (k TopKey) MarshalJSON() ([]byte, error) {
	return json.Marshal(struct {
		keyJSON
		Count int64            `json:"count"`
		Peaks map[string]int64 `json:"peaks"`
	}{k.Key.json(), k.Count, k.Peaks})
}

// A RuleReport is what one rule did.
type RuleReport struct {
	Name          string      `json:"name"`
	Kind          Kind        `json:"kind"`
	Key           any         `json:"key"` // field name, or a list of them
	LimitJSON                 // the first limit, or what the ban or hot rule counts
	Limits        []LimitJSON `json:"limits,omitempty"` // all of them, when there are several
	BanSeconds    float64     `json:"ban_seconds,omitempty"`
	Algorithm     string      `json:"algorithm"`
	Zone          string      `json:"zone,omitempty"`   // of algorithm calendar
	Adapts        bool        `json:"adapts,omitempty"` // the traffic changed n as it went
	Mode          string      `json:"mode,omitempty"`   // "shadow"
	Allowed       *int64      `json:"allowed,omitempty"`
	Refused       *int64      `json:"refused,omitempty"`
	KeysRefused   *int64      `json:"keys_refused,omitempty"`
	RefusedByRule *int64      `json:"refused_by_rule,omitempty"`
	WouldRefuse   *int64      `json:"would_refuse,omitempty"`

	// RefusedRange is, of a log that is less precise than a live clock, between
	// which numbers the rule's own refusals are, whatever its times lack: those of
	// Refused for a what-if, of RefusedByRule or WouldRefuse for a rule.
	RefusedRange *Range `json:"refused_range,omitempty"`

	Bans         *int64      `json:"bans,omitempty"`
	BannedKeys   *int64      `json:"banned_keys,omitempty"`
	BanList      []BanReport `json:"ban_list,omitzero"`       // the first ones
	BansLeftOut  int64       `json:"bans_left_out,omitempty"` // bans that are not in BanList
	HotKeys      *int64      `json:"hot_keys,omitempty"`
	FirstHot     []Moment    `json:"first_hot,omitzero"`
	Busiest      []BusyKey   `json:"busiest,omitzero"`
	SHA256       string      `json:"sha256"`
	StartsSHA256 string      `json:"starts_sha256,omitempty"`
	MostRefused  []BannedKey `json:"-"` // the keys with the most refused events
	Sentence     string      `json:"-"`
}

// LimitJSON is one limit: n in a span, or in a period of the calendar, of which
// span_seconds is the longest that it can be.
type LimitJSON struct {
	N           uint64  `json:"n"`
	SpanSeconds float64 `json:"span_seconds"`
	Period      string  `json:"period,omitempty"`
	Burst       uint64  `json:"burst,omitempty"` // if it is not n
}

func limitJSON(l ratelimit.Limit) LimitJSON {
	return LimitJSON{N: l.N, SpanSeconds: l.Window().Seconds(), Period: l.Per.String(), Burst: l.Burst}
}

// A Moment is a key at a time.
type Moment struct {
	Keyed
	T json.Number
}

// MarshalJSON writes t and key.
func (m Moment) MarshalJSON() ([]byte, error) {
	return json.Marshal(struct {
		T json.Number `json:"t"`
		keyJSON
	}{m.T, m.Key.json()})
}

// A BanReport is one ban: of whom, and from when to when.
type BanReport struct {
	Keyed
	Start, End json.Number // epoch seconds
}

// MarshalJSON writes key, start and end.
func (b BanReport) MarshalJSON() ([]byte, error) {
	return json.Marshal(struct {
		keyJSON
		Start json.Number `json:"start"`
		End   json.Number `json:"end"`
	}{b.Key.json(), b.Start, b.End})
}

// A BusyKey is one of the busiest keys under a rule.
type BusyKey struct {
	Keyed
	Allowed, Refused int64
}

// MarshalJSON writes key, allowed and refused.
func (k BusyKey) MarshalJSON() ([]byte, error) {
	return json.Marshal(struct {
		keyJSON
		Allowed int64 `json:"allowed"`
		Refused int64 `json:"refused"`
	}{k.Key.json(), k.Allowed, k.Refused})
}

// A BannedKey is a key that a rule refused.
type BannedKey struct {
	Key           Key
	Refused, Bans int64
}

// A BadLine is a line that could not be parsed.
type BadLine struct {
	File string `json:"file"`
	Line int64  `json:"line"`
	Text string `json:"-"`
	Cut  bool   `json:"cut,omitempty"` // Text is only the line's beginning
}

// MarshalJSON writes the text as characters U+0000 to U+00FF unless it is UTF-8.
func (b BadLine) MarshalJSON() ([]byte, error) {
	type plain BadLine
	return json.Marshal(struct {
		plain
		Text any `json:"text"`
	}{plain(b), Key{b.Text}.json().Key})
}

// A FileYear is the year that the first line of a file is taken to be of, whose
// times have none and for which Config.Year gives none: by the time when the file was
// last modified, or by the present time for standard input.
type FileYear struct {
	File string `json:"file"`
	Year int    `json:"year"`
}

// A Jump is a step in time of more than a day between neighbouring events of
// the files, forward or back: a gap in the log, or a wrong date.
type Jump struct {
	From json.Number `json:"from"`
	To   json.Number `json:"to"`
}

// maxJumps is how many jumps are reported.
const maxJumps = 10

// summarize counts the lines of all blocks.
func (r *run) summarize(blocks []*parsed) *Report {
	report := &Report{Files: r.Files, Top: []TopKey{}, Rules: []RuleReport{}, Key: r.Key}
	lines := make([]int64, len(r.Files)) // so far, in each file
	for _, b := range blocks {
		for _, bad := range b.badLines {
			if len(report.BadLines) < r.BadLines {
				bad.File, bad.Line = r.Files[b.file], bad.Line+lines[b.file]
				report.BadLines = append(report.BadLines, bad)
			}
		}
		lines[b.file] += b.lines
		report.Lines += b.lines
		report.Skipped += b.skipped
		report.Bad += b.bad
		report.Events += int64(len(b.times))
	}
	report.Parsed = report.Lines - report.Skipped - report.Bad
	report.AssumedYears = r.assumed
	var names []string
	for _, f := range r.formats {
		if name := f.String(); name != "" && !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	report.Format = strings.Join(names, ",")
	for _, err := range r.problems {
		report.Problems = append(report.Problems, err.Error())
	}
	return report
}

// textKeys reports whether keys are UTF-8 text in all files, which is how the
// digests then encode them; otherwise they are bytes, encoded as Latin-1.
func (r *run) textKeys() bool {
	known := false
	for _, f := range r.formats {
		if f.String() != "" {
			known = true
			if !f.TextKeys() {
				return false
			}
		}
	}
	return known
}

// jumps finds the steps of more than a day between neighbours in file order.
func (r *run) jumps(t *timeline) []Jump {
	day := r.clock.of(24 * time.Hour)
	var jumps []Jump
	for i := 1; i < len(t.times) && len(jumps) < maxJumps; i++ {
		if d := t.times[i] - t.times[i-1]; d > day || d < -day {
			jumps = append(jumps, Jump{r.epoch(t.times[i-1]), r.epoch(t.times[i])})
		}
	}
	return jumps
}

func (r *run) epoch(tick int64) json.Number {
	return json.Number(r.clock.appendEpoch(nil, tick))
}
