package replay

import (
	"bytes"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/lately-go/lately/api"
	"github.com/lately-go/lately/ratelimit"
)

// A Report is the result of a replay. As JSON it is the --json report, without the
// fields that do not apply.
type Report struct {
	Files   []string `json:"files"`
	Summary string   `json:"summary,omitempty"` // a sentence about what stands out
	Format  string   `json:"format"`            // joined by commas if files differ
	Lines   int64    `json:"lines"`             // lines = parsed + skipped + bad
	Parsed  int64    `json:"parsed"`
	Skipped int64    `json:"skipped"` // ordinary lines of other kinds, such as logins that did not fail
	Bad     int64    `json:"bad"`
	First   *Epoch   `json:"first,omitempty"`
	Last    *Epoch   `json:"last,omitempty"`

	// Late lists the events that Config.Lateness omitted.
	Late *LateReport `json:"late,omitempty"`

	// Cut is the cut of the log, or nil. First, Last and all fields below are about the
	// events in it.
	Cut *CutReport `json:"cut,omitempty"`

	// ResolutionSeconds is the precision at which times were judged, and
	// LogResolutionSeconds that of the log. They differ if Config.Resolution is set.
	ResolutionSeconds    float64 `json:"resolution_seconds"`
	LogResolutionSeconds float64 `json:"log_resolution_seconds"`

	ElapsedSeconds  float64          `json:"elapsed_seconds"`
	Top             []TopKey         `json:"top"`
	SuggestedLimits []SuggestedLimit `json:"suggested_limits,omitempty"` // by the peaks of all keys
	Traffic         *Traffic         `json:"traffic,omitempty"`          // with Config.Traffic
	Rules           []RuleReport     `json:"rules"`
	All             *Together        `json:"all,omitempty"` // the limits and bans of a rules file together
	Timeline        *Timeline        `json:"timeline,omitempty"`

	// Compared is the limit under each algorithm, if Config.Compare is set.
	Compared []AlgorithmReport `json:"compared,omitempty"`

	BadLines []BadLine `json:"bad_lines,omitempty"`
	Jumps    []Jump    `json:"jumps,omitempty"`
	AssumedTimes
	Crawlers []string `json:"crawlers,omitempty"` // allowed by the rules, but judged like other clients, since a replay makes no DNS queries
	Problems []string `json:"problems,omitempty"` // with files, as sentences

	Events int64  `json:"events"` // a parsed line is one event, or several if it has a list
	Keys   int    `json:"keys"`   // distinct keys of the field that Top counts
	Key    string `json:"key"`    // that field
}

// An Epoch is a time whose JSON is the decimal number of seconds since 1970.
type Epoch struct{ time.Time }

// String returns the seconds.
func (e Epoch) String() string { return string(e.append(nil)) }

// MarshalJSON returns the seconds as a number.
func (e Epoch) MarshalJSON() ([]byte, error) { return e.append(nil), nil }

func (e Epoch) append(dst []byte) []byte {
	sec, nanos := e.Unix(), e.Nanosecond()
	if nanos == 0 {
		return strconv.AppendInt(dst, sec, 10)
	}
	if sec < 0 {
		dst = append(dst, '-')
		sec, nanos = -sec-1, int(time.Second)-nanos
	}
	return bytes.TrimRight(fmt.Appendf(dst, "%d.%09d", sec, nanos), "0")
}

// A TopKey is one of the busiest values of the field Config.Key.
type TopKey struct {
	api.Key
	Count int64            `json:"count"`
	Peaks map[string]int64 `json:"peaks"` // largest count in any window of 1s, 10s, ...

	// Refused is, with SortRefused, the number of events that a limit or ban
	// refused.
	Refused *int64 `json:"refused,omitempty"`

	Traffic *Traffic `json:"traffic,omitempty"` // with Config.Traffic
}

// Together has the decisions of all limits and bans of a rules file together. SHA256 is
// the digest of one byte per event, in the order of judging: A for allowed, D for refused.
type Together struct {
	Allowed int64  `json:"allowed"`
	Refused int64  `json:"refused"`
	SHA256  string `json:"sha256"`
}

// A RuleReport has the results of one rule alone: Refused does not include events that
// only other rules refused. For a limit or ban in shadow mode, these are the refusals
// that it would have made.
type RuleReport struct {
	Name        string      `json:"name"`
	Kind        Kind        `json:"kind"`
	Fields      []string    `json:"fields"` // of the key
	LimitJSON               // the first limit, or the threshold of the ban or hot rule
	Limits      []LimitJSON `json:"limits,omitempty"` // all of them, if there are several
	BanSeconds  float64     `json:"ban_seconds,omitempty"`
	Algorithm   string      `json:"algorithm"`
	Zone        string      `json:"zone,omitempty"`   // of algorithm calendar
	Adapts      bool        `json:"adapts,omitempty"` // n followed the traffic
	Mode        string      `json:"mode,omitempty"`   // "shadow"
	Allowed     *int64      `json:"allowed,omitempty"`
	Refused     *int64      `json:"refused,omitempty"`
	KeysRefused *int64      `json:"keys_refused,omitempty"`

	// Lacking is the number of events that match a limit or ban and lack a field of its key.
	// LackingSentence describes them.
	Lacking         int64  `json:"lacking,omitempty"`
	LackingSentence string `json:"lacking_sentence,omitempty"`

	// Timeline has, for a limit or ban, the refused events over time, in the bars of
	// Report.Timeline.
	Timeline *Refusals `json:"timeline,omitempty"`

	Bans         *int64      `json:"bans,omitempty"`
	BannedKeys   *int64      `json:"banned_keys,omitempty"`
	BanList      []BanReport `json:"ban_list,omitzero"`       // the first ones
	BansLeftOut  int64       `json:"bans_left_out,omitempty"` // bans that are not in BanList
	HotKeys      *int64      `json:"hot_keys,omitempty"`
	FirstHot     []Moment    `json:"first_hot,omitzero"`
	Busiest      []BusyKey   `json:"busiest,omitzero"` // the keys with the most events that the rule judged
	SHA256       string      `json:"sha256"`
	StartsSHA256 string      `json:"starts_sha256,omitempty"`

	mostRefused []refusedKey // the keys with the most refused events
}

// LimitJSON is one limit: n in a span, or in a calendar period, whose longest
// length is span_seconds.
type LimitJSON struct {
	N           uint64  `json:"n"`
	SpanSeconds float64 `json:"span_seconds"`
	Period      string  `json:"period,omitempty"`
	Burst       uint64  `json:"burst,omitempty"`   // if not n
	AtMost      uint64  `json:"at_most,omitempty"` // the largest limit that an event may bring instead of n
}

func limitJSON(l ratelimit.Limit) LimitJSON {
	return LimitJSON{N: l.N, SpanSeconds: l.Window().Seconds(), Period: l.Per.String(), Burst: l.Burst, AtMost: l.AtMost}
}

// A Moment is a key at a time.
type Moment struct {
	T Epoch `json:"t"`
	api.Key
}

// A BanReport is one ban: its key, start and end.
type BanReport struct {
	api.Key
	Start Epoch `json:"start"`
	End   Epoch `json:"end"`
}

// A BusyKey is one of the busiest keys of a rule.
type BusyKey struct {
	api.Key
	Allowed int64 `json:"allowed"`
	Refused int64 `json:"refused"`
}

// A refusedKey is a key that a rule refused.
type refusedKey struct {
	api.Key
	refused, bans int64
}

// A BadLine is a line that could not be parsed. Text or, if that is not UTF-8, Base64
// is the line, or the beginning of a long one.
type BadLine struct {
	File   string `json:"file"`
	Line   int64  `json:"line"`
	Cut    bool   `json:"cut,omitempty"` // there is more of the line
	Text   string `json:"text,omitempty"`
	Base64 []byte `json:"text_base64,omitempty"`
}

func newBadLine(line int64, text []byte, cut bool) BadLine {
	b := BadLine{Line: line, Cut: cut}
	if utf8.Valid(text) {
		b.Text = string(text)
	} else {
		b.Base64 = slices.Clone(text)
	}
	return b
}

// A Jump is a step in time of more than a day between neighbouring events of
// the files, forward or back: a gap in the log, or a wrong date.
type Jump struct {
	From Epoch `json:"from"`
	To   Epoch `json:"to"`
}

// maxJumps is how many jumps are reported.
const maxJumps = 10

// summarize reports the lines of all files.
func (r *run) summarize() *Report {
	report := &Report{Files: r.Files, Top: []TopKey{}, Rules: []RuleReport{}, Key: r.Key, Cut: r.cutReport(), Late: r.lateReport(), Jumps: r.jumps()}
	if r.Rules != nil {
		report.Crawlers = r.Rules.Allow.Crawlers
	}
	report.ResolutionSeconds, report.LogResolutionSeconds = r.resolution.Seconds(), r.precision.Seconds()
	var names []string
	for _, l := range r.logs {
		report.BadLines = append(report.BadLines, l.badLines[:min(len(l.badLines), maxBadLines-len(report.BadLines))]...)
		report.Lines += l.lines
		report.Skipped += l.skipped
		report.Bad += l.bad
		report.Events += l.events
		if l.assumed != 0 {
			report.AssumedYears = append(report.AssumedYears, FileYear{l.path, l.assumed})
		}
		report.ByClock = report.ByClock || l.byClock
		report.Zoneless = report.Zoneless || l.zoneless && l.events > 0
		report.EitherOrder = report.EitherOrder || l.eitherOrder
		if name := l.format.String(); name != "" && !slices.Contains(names, name) {
			names = append(names, name)
		}
		for _, err := range l.problems {
			report.Problems = append(report.Problems, err.Error())
		}
	}
	report.Parsed = report.Lines - report.Skipped - report.Bad
	report.Format = strings.Join(names, ",")
	return report
}

// textKeys reports whether the keys of all files are UTF-8. Digests then have them
// unchanged, otherwise with each byte as the character U+0000 to U+00FF.
func (r *run) textKeys() bool {
	known := false
	for _, l := range r.logs {
		if l.format.String() != "" {
			known = true
			if !l.format.TextKeys() {
				return false
			}
		}
	}
	return known
}

// jumps returns the steps of more than a day between neighbours in the order of the files.
func (r *run) jumps() []Jump {
	var jumps []Jump
	var before *logFile // the last one with an event
	for _, l := range r.logs {
		if !l.begun {
			continue
		}
		if before != nil && isJump(before.last, l.first) {
			jumps = append(jumps, Jump{epoch(before.last), epoch(l.first)})
		}
		jumps, before = append(jumps, l.jumps...), l
	}
	return jumps[:min(len(jumps), maxJumps)]
}

func epoch(nanos int64) Epoch { return Epoch{time.Unix(0, nanos)} }
