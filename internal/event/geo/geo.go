// Package geo gives events the country and the autonomous system of their client, from local files in the mmdb format, as
// MaxMind, DB-IP and IPinfo publish them. It opens no connection.
package geo

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"unsafe"

	"github.com/oschwald/maxminddb-golang/v2"

	"github.com/lately-go/lately/internal/event/address"
	"github.com/lately-go/lately/internal/event/eventfield"
	"github.com/lately-go/lately/internal/event/keyvalue"
	"github.com/lately-go/lately/internal/event/when"
	"github.com/lately-go/lately/internal/file/fileperm"
	"github.com/lately-go/lately/match"
	"github.com/lately-go/lately/rules"
)

// DB is one or more files, each with countries, autonomous systems or both. All methods may be called at the same time.
type DB struct{ files []*file }

// A file has the contents of a file that may change.
type file struct {
	path    string
	reading sync.Mutex
	info    fs.FileInfo // of the contents that were read last
	damage  error       // of these contents
	data    atomic.Pointer[database]
}

// A database is the contents of a file. Thousands of networks share a record, and a record takes longer to decode than to
// find, so that decoded ones are kept by their offsets: a newer one replaces another in its place.
type database struct {
	reader  *maxminddb.Reader
	records [1 << 14]atomic.Pointer[record]
	has     record // an example of each field
}

// A record has the fields of a network, "" for those that it lacks.
type record struct {
	offset       uintptr
	country, asn string
}

// Open reads files. The memory that it takes is their size. Without a file it returns nil.
func Open(paths ...string) (d *DB, err error) {
	if len(paths) == 0 {
		return nil, nil
	}
	d = new(DB)
	for _, path := range paths {
		d.files = append(d.files, &file{path: path})
	}
	_, err = d.Refresh()
	return d, err
}

// Refresh reads the files again that have changed, and returns their names. What was read of a file before stays in use if it
// is now missing or damaged, which is an error.
func (d *DB) Refresh() (read []string, err error) {
	var errs []error
	for _, f := range d.files {
		changed, err := f.refresh()
		if err != nil {
			errs = append(errs, err)
		} else if changed {
			read = append(read, f.path)
		}
	}
	return read, errors.Join(errs...)
}

func (f *file) refresh() (changed bool, err error) {
	f.reading.Lock()
	defer f.reading.Unlock()
	now, err := os.Stat(f.path)
	if err == nil && f.info != nil && os.SameFile(now, f.info) && now.Size() == f.info.Size() && now.ModTime().Equal(f.info.ModTime()) {
		return false, f.damage
	}
	if err != nil {
		return false, fmt.Errorf("geo: %s: %w: must be a file in the mmdb format", f.path, errors.Unwrap(err))
	}
	data, err := read(f.path)
	f.info, f.damage = now, nil
	if err != nil {
		f.damage = fmt.Errorf("geo: %w: must be a whole file in the mmdb format that has countries or autonomous systems, such as GeoLite2-Country.mmdb", err)
		return false, f.damage
	}
	f.data.Store(data)
	return true, nil
}

const (
	maxFile = 4 << 30
	probed  = 1000 // networks that are looked at to see which fields a file has
)

func read(path string) (*database, error) {
	text, err := fileperm.ReadFile(path, maxFile) // not mapped: a mapped file that somebody cuts ends the process
	if err != nil {
		return nil, err
	}
	d := new(database)
	if err := d.open(text); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return d, nil
}

func (d *database) open(text []byte) (err error) {
	if d.reader, err = maxminddb.OpenBytes(text); err != nil {
		return err
	}
	n := 0
	for network := range d.reader.Networks() {
		r, err := decode(network)
		if err != nil {
			return err
		}
		if r.country != "" {
			d.has.country = r.country
		}
		if r.asn != "" {
			d.has.asn = r.asn
		}
		if n++; n == probed {
			break
		}
	}
	if d.has == (record{}) {
		return errors.New("no country and no autonomous system in it")
	}
	return nil
}

// decode reads a record of any of the publishers.
func decode(found maxminddb.Result) (*record, error) {
	if err := found.Err(); err != nil {
		return nil, err
	}
	r := &record{offset: found.Offset()}
	for _, path := range [][]any{{"country", "iso_code"}, {"country_code"}, {"country"}} {
		if r.country == "" {
			_ = found.DecodePath(&r.country, path...) // of another type: of another publisher
		}
	}
	var number uint64
	if _ = found.DecodePath(&number, "autonomous_system_number"); number > 0 {
		r.asn = strconv.FormatUint(number, 10)
	} else {
		_ = found.DecodePath(&r.asn, "asn")
		r.asn = strings.TrimPrefix(r.asn, "AS")
	}
	return r, nil
}

// Set gives ev the fields country and asn, if its client is an address in a file and it has not got them. It allocates only
// for records that were not used lately.
func (d *DB) Set(ev *match.Event) {
	client := ev.Get(match.Client)
	addr, ok := address.Parse(unsafe.String(unsafe.SliceData(client), len(client)))
	if !ok {
		return
	}
	hasCountry, hasASN := len(ev.GetNamed(eventfield.Country)) > 0, len(ev.GetNamed(eventfield.ASN)) > 0
	for _, f := range d.files {
		db := f.data.Load()
		found := db.reader.Lookup(addr)
		if !found.Found() {
			continue
		}
		r := db.record(found)
		if !hasCountry && r.country != "" {
			ev.SetNamedString(eventfield.Country, r.country)
			hasCountry = true
		}
		if !hasASN && r.asn != "" {
			ev.SetNamedString(eventfield.ASN, r.asn)
			hasASN = true
		}
	}
}

// record returns the record that was found, or one without fields if it is damaged.
func (d *database) record(found maxminddb.Result) *record {
	offset := found.Offset()
	kept := &d.records[uint64(offset)*0x9e3779b97f4a7c15>>50]
	if r := kept.Load(); r != nil && r.offset == offset {
		return r
	}
	r, err := decode(found)
	if err != nil {
		return new(record)
	}
	kept.Store(r)
	return r
}

// Uses reports whether one of fields is set by a DB.
func Uses(fields []string) bool {
	return slices.Contains(fields, eventfield.Country) || slices.Contains(fields, eventfield.ASN)
}

// missing returns the first of fields that only a DB sets and d, which may be nil, does not, and a sentence that
// names the flag; none if there is none.
func (d *DB) missing(fields []string) (field, problem string) {
	var has record
	if d != nil {
		for _, f := range d.files {
			db := f.data.Load()
			has.country, has.asn = has.country+db.has.country, has.asn+db.has.asn
		}
	}
	switch {
	case has.country == "" && slices.Contains(fields, eventfield.Country):
		return eventfield.Country, "field country: it needs --geo FILE, a local mmdb file that has countries, such as GeoLite2-Country.mmdb"
	case has.asn == "" && slices.Contains(fields, eventfield.ASN):
		return eventfield.ASN, "field asn: it needs --geo FILE, a local mmdb file that has autonomous systems, such as GeoLite2-ASN.mmdb"
	}
	return "", ""
}

// Check returns an error if file has a rule about a field that d, which may be nil, does not set: at the place of the first one.
func (d *DB) Check(file *rules.File) error {
	field, problem := d.missing(file.Fields())
	if field == "" {
		return nil
	}
	if rule := ruleAbout(file, field); rule != "" {
		return file.RuleError(rule, problem)
	}
	return fmt.Errorf("%s: %s", file.Name, problem) // a limit takes its number from the field
}

// ruleAbout returns the name of the first limit, ban, counter or hot rule that looks at a field.
func ruleAbout(file *rules.File, field string) string {
	uses := func(key match.Key, w *match.When) bool {
		return slices.Contains(keyvalue.Fields(key), field) || slices.Contains(when.Fields(w), field)
	}
	for _, r := range file.Limits.Rules() {
		if uses(r.Key, &r.When) {
			return r.Name
		}
	}
	for i := range file.Counters {
		if c := &file.Counters[i]; uses(c.Key, &c.When) {
			return c.Name
		}
	}
	for i := range file.Hot {
		if r := &file.Hot[i]; uses(r.Key, &r.When) {
			return r.Name
		}
	}
	return ""
}
