package replay

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"iter"
	"net/netip"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/lately-go/lately/accesslog"
	"github.com/lately-go/lately/hotkey"
	"github.com/lately-go/lately/internal/event/eventfield"
	"github.com/lately-go/lately/internal/event/intake"
	"github.com/lately-go/lately/internal/event/keyvalue"
	"github.com/lately-go/lately/internal/rule/rulevalue"
	"github.com/lately-go/lately/internal/rule/spelling"
	"github.com/lately-go/lately/latelyhttp"
	"github.com/lately-go/lately/match"
	"github.com/lately-go/lately/ratelimit"
	"github.com/lately-go/lately/rules"
)

// Config configures a [Run]. Only Files or Events is required: the zero value of
// every other field is its default.
type Config struct {
	// Files are read in this order and merged into one timeline; "-" is Stdin. The
	// first bytes of a file determine its compression, not its name.
	Files []string
	Stdin io.Reader

	// Events, if not nil, is replayed instead of Files. An event is used until the next. [Diff]
	// also accepts requests and their answers as separate events, and judges them as the live code
	// does.
	Events iter.Seq[*match.Event]

	// Rules are judged together, as by the server. Without Rules, each of WhatIfs
	// is judged alone.
	Rules   *rules.File
	WhatIfs []WhatIf

	// Cut selects the events that are replayed; by default all.
	Cut Cut

	// Key is the key of the busiest keys, and of what-ifs without a key of their own, as
	// in a rules file. Default "client"; for hot what-ifs "object".
	Key string

	// Algorithm and CountRefused apply to what-ifs that are limits.
	Algorithm    ratelimit.Algorithm
	CountRefused bool
	// Compare adds the decisions of each algorithm under the limit of WhatIfs to the
	// report. WhatIfs must be one limit in a span.
	Compare bool

	// Budget, if not 0, bounds the memory in bytes for the limits and bans of each rules
	// file in [Diff]. A problem reports when it was too small: keys were then evicted, or
	// refused too early. By default memory is not bounded.
	Budget int64

	// Format is a name or a spec of package accesslog. By default, or with "auto", the
	// first lines of each file determine its format.
	Format string

	// TrustedProxies are the networks of your proxies. If the client of an event is in
	// them, the client is taken from its field x_forwarded_for, as by
	// [latelyhttp.Identity] for a live request.
	TrustedProxies []netip.Prefix

	// Locate, if not nil, sets the fields country and asn of an event by its client. It must be
	// safe for concurrent use. It is called only if a rule or the report uses one of these fields.
	Locate func(*match.Event)

	// Year is the year of the first line of a syslog file. By default the
	// file's modification time gives the year of the last line: the latest year
	// in which the last event is not after that time.
	Year int

	// Resolution, if not 0, is the precision to which event times are rounded down,
	// and at which limits count: 1 µs to 1 h, and a divisor of a second or whole
	// seconds. Each window must be a multiple of it. By default times are not
	// rounded, and limits count in nanoseconds, as live ones do.
	Resolution time.Duration

	// Lateness, if not 0, is the largest time by which an event may be older than an
	// event before it in its file; older events are omitted and reported as late.
	// Events are then judged while the files are read, so that memory does not grow
	// with their number, and files are merged by time. If no event is late, the report
	// is the same as without.
	Lateness time.Duration

	// Traffic adds to the report the most frequent statuses, methods, paths, agents and referrers,
	// and the bytes of responses, of all events and of each of the busiest keys. With Lateness it
	// covers all events only.
	Traffic bool

	// Top is the number of busiest keys to report. Default 20.
	Top int
	// Sort is the order of the busiest keys.
	Sort Sort

	// Cores is the number of goroutines that parse and judge. Default
	// GOMAXPROCS.
	Cores int

	// Progress, if not nil, is updated during Run.
	Progress *Progress

	// For tests, what applyDefaults sets: the bytes of a block, and how many events a
	// chunk has at least, except the last; and the size of tables of frequent values.
	blockSize, chunkEvents, frequent int
}

const (
	defaultTop  = 20
	maxTop      = 1 << 20
	maxLateness = 87_600 * time.Hour
)

// Validate returns the error that [Run] would return for c before reading a
// file.
func (c Config) Validate() error {
	_, err := newRun(c)
	return err
}

// newIntake returns what digests the fields that one of the rulesets declares as hashed, with a random key, or nil.
func newIntake(rulesets []ruleset) *intake.Intake {
	var all []match.Source
	for i := range rulesets {
		all = append(all, rulesets[i].limits.Internal().Sources()...)
	}
	return intake.New(all, intake.ProcessKey())
}

// newRun validates c and returns a run of it. Beside the rules of c it judges the limits
// and bans of each of files.
func newRun(c Config, files ...*rules.File) (*run, error) {
	r := &run{Config: c, keyGiven: c.Key != "", positions: c.Lateness > 0, span: always}
	if err := r.applyDefaults(); err != nil {
		return nil, err
	}
	fields, err := r.eventFields()
	if err != nil {
		return nil, err
	}
	if r.key, err = parseKey("--key", r.Key, fields); err != nil {
		return nil, err
	}
	if r.identity, err = newIdentity(r.TrustedProxies, fields); err != nil {
		return nil, err
	}
	if r.where, r.cutFields, err = r.Cut.compile(fields); err != nil {
		return nil, err
	}
	if r.rulesets, err = r.compile(fields); err != nil {
		return nil, err
	}
	for _, f := range files {
		r.rulesets = append(r.rulesets, limitsOf(f))
	}
	for i := range r.rulesets {
		if err := r.rulesets[i].checkWindows(r.Resolution); err != nil {
			return nil, err
		}
	}
	r.intake = newIntake(r.rulesets)
	r.fields = r.usedFields()
	if !r.Cut.relative() {
		r.span = r.Cut.span(0)
	}
	for i, path := range r.Files {
		r.logs = append(r.logs, newLogFile(i, path))
	}
	if r.Events != nil {
		r.logs = append(r.logs, newLogFile(0, ""))
	}
	return r, nil
}

// detector returns a Detector of rule alone, in event time.
func (r *run) detector(rule *hotkey.Rule) (*hotkey.Detector, error) {
	budget := int64(hotkey.NoBudget)
	if r.Lateness > 0 {
		budget = streamBudget
	}
	return hotkey.NewDetector([]hotkey.Rule{*rule}, hotkey.DetectorConfig{Budget: budget})
}

func (c *Config) applyDefaults() error {
	if c.Events != nil && len(c.Files) > 0 {
		return errors.New("events and files: both given: must be one of them")
	}
	if len(c.Files) == 0 && c.Events == nil {
		return errors.New("no file: must be one or more paths, or - for standard input")
	}
	c.Key = cmp.Or(c.Key, "client")
	c.Format = cmp.Or(c.Format, "auto")
	c.Top = cmp.Or(c.Top, defaultTop)
	c.Cores = cmp.Or(c.Cores, runtime.GOMAXPROCS(0))
	c.blockSize = cmp.Or(c.blockSize, blockSize)
	c.chunkEvents = cmp.Or(c.chunkEvents, chunkEvents)
	c.Progress = cmp.Or(c.Progress, new(Progress))
	if c.Top < 0 || c.Top > maxTop {
		return fmt.Errorf("--top: %d: must be 1 to %d", c.Top, maxTop)
	}
	switch c.Sort {
	case "", SortCount, SortPeak:
	case SortRefused:
		if c.Rules == nil && !slices.ContainsFunc(c.WhatIfs, func(w WhatIf) bool { return w.Kind != Hot }) {
			return errors.New("--sort refused: must be given with --rules, --limit or --ban")
		}
	default:
		return fmt.Errorf("--sort: %q: must be count, peak or refused", c.Sort)
	}
	switch {
	case c.Lateness < 0 || c.Lateness > maxLateness:
		return fmt.Errorf("--lateness: %v: must be 0 to 87600h", c.Lateness)
	case c.Lateness > 0 && c.Cut.relative():
		return errors.New("--lateness: must not be given with a distance such as --since -2h: events are judged before the end of the log is known; give a time")
	}
	if c.Year != 0 && (c.Year < firstYear || c.Year > lastYear) {
		return fmt.Errorf("--year: %d: must be %d to %d", c.Year, firstYear, lastYear)
	}
	if r := c.Resolution; r != 0 && (r < time.Microsecond || r > time.Hour || r%time.Second != 0 && time.Second%r != 0) {
		return fmt.Errorf("--resolution: %v: must be from 1µs to 1h, and whole seconds or a divisor of a second", r)
	}
	return nil
}

// compile returns the rules file as one ruleset, or each what-if as its own. Events can
// have these fields.
func (c *Config) compile(fields []string) ([]ruleset, error) {
	if c.Rules != nil {
		if c.Compare {
			return c.compareRulesets(fields)
		}
		if len(c.WhatIfs) > 0 {
			return nil, errors.New("--rules: must not be given with --limit, --ban or --hot: a rules file is judged together, these each alone")
		}
		return []ruleset{rulesOf(c.Rules)}, nil
	}
	if c.CountRefused && c.Algorithm == ratelimit.InFlight {
		return nil, errors.New("--count-refused has no effect with --algorithm in-flight: a refused event is never under way; leave it out")
	}
	var rulesets []ruleset
	for _, w := range c.WhatIfs {
		if w.Key == "" && w.Kind == Hot {
			w.Key = "object"
		}
		w.Key = cmp.Or(w.Key, c.Key)
		key, err := parseKey(w.option(), w.Key, fields)
		if err != nil {
			return nil, err
		}
		rs, err := w.ruleset(key, c.Algorithm, c.CountRefused)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", w.option(), err)
		}
		rulesets = append(rulesets, rs)
	}
	if c.Compare {
		compared, err := c.compareRulesets(fields)
		return append(rulesets, compared...), err
	}
	return rulesets, nil
}

// located reports whether Locate sets a field of that name.
func located(field string) bool { return field == eventfield.Country || field == eventfield.ASN }

// eventFields returns the names of the fields that events can have.
func (c *Config) eventFields() ([]string, error) {
	format := c.Format
	if format == "auto" {
		format = "docker-json" // which has the fields of all formats that are detected
	}
	f, err := accesslog.ParseFormat(format)
	if err != nil {
		return nil, fmt.Errorf("--format: %w", err)
	}
	if c.Locate != nil {
		return append(f.Fields(), eventfield.Country, eventfield.ASN), nil
	}
	return f.Fields(), nil
}

// knownField returns an error if no event can have the field that an option names.
func knownField(option, field string, fields []string) error {
	if slices.Contains(fields, field) || field == eventfield.Log || field == eventfield.Format {
		return nil
	}
	return fmt.Errorf("%s: %s", option, unknownField(field, fields))
}

// parseKey parses the key that an option names. Clients that it does not fold, and paths, are as the log
// has them.
func parseKey(option, text string, fields []string) (k match.Key, err error) {
	if k, err = rulevalue.ParseKey(match.Fold{Off: true}, text); err != nil {
		return k, fmt.Errorf("%s: %w", option, err)
	}
	for _, field := range keyvalue.Fields(k) {
		if err := knownField(option, field, fields); err != nil {
			return k, err
		}
	}
	return k, nil
}

// unknownField returns a sentence that no event can have the field, and which one may be
// meant.
func unknownField(field string, fields []string) string {
	if located(field) {
		return "the field " + field + " needs --geo FILE, a local mmdb file such as GeoLite2-Country.mmdb or GeoLite2-ASN.mmdb"
	}
	if len(fields) == 0 {
		return fmt.Sprintf("unknown field %q: the format has a time only; add the field to its spec, such as client=PLACE", field)
	}
	if near := spelling.Nearest(field, fields, 2); near != "" {
		return fmt.Sprintf("unknown field %q; did you mean %s?", field, near)
	}
	return fmt.Sprintf("unknown field %q: must be one of %s", field, strings.Join(fields, ", "))
}

// newIdentity returns the Identity that finds clients behind proxies, nil if there are
// none. Events can have these fields.
func newIdentity(proxies []netip.Prefix, fields []string) (*latelyhttp.Identity, error) {
	if len(proxies) == 0 {
		return nil, nil
	}
	if !slices.Contains(fields, eventfield.ForwardedFor) {
		return nil, errors.New("--trusted-proxy: the format has no field " + eventfield.ForwardedFor + ": must be one that has it, such as an nginx: format with $http_x_forwarded_for")
	}
	for _, p := range proxies {
		if p.Bits() == 0 {
			return nil, errors.New("--trusted-proxy: " + p.String() + ": trusts every address that a client claims: must be the networks of the proxies")
		}
	}
	return latelyhttp.NewIdentity(latelyhttp.IdentityConfig{TrustedProxies: proxies})
}
