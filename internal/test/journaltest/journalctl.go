package journaltest

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Main is journalctl, if the process has that name. It does not return then.
func Main() {
	if filepath.Base(os.Args[0]) == "journalctl" {
		c := journalctl{dir: os.Getenv(directory), parent: os.Getppid()}
		if err := c.run(os.Args[1:]); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
}

// A journalctl prints the entries of a journal until it is killed, or its parent has ended.
type journalctl struct {
	dir    string
	parent int

	since       int64  // microseconds
	next        uint64 // number of the first entry to print
	identifiers []string
	units       []string
	fields      []string // that are printed, and the cursor and the time

	kills   int64
	entries os.FileInfo // that were read last
}

// run prints what the arguments select. It accepts the options that Lately
// uses.
func (c *journalctl) run(args []string) error {
	c.kills = c.killed()
	starts, err := os.OpenFile(filepath.Join(c.dir, startsFile), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = starts.WriteString(strings.Join(args, " ") + "\n")
	if err = errors.Join(err, starts.Close()); err != nil {
		return err
	}
	for _, needed := range []string{"--output=json", "--all", "--follow", "--no-tail", "--no-pager"} {
		i := slices.Index(args, needed)
		if i < 0 {
			return fmt.Errorf("without %s", needed)
		}
		args = slices.Delete(args, i, i+1)
	}
	for _, arg := range args {
		if err := c.set(arg); err != nil {
			return err
		}
	}
	message, _ := os.ReadFile(filepath.Join(c.dir, messageFile)) // none if it is not there
	fmt.Fprint(os.Stderr, string(message))
	if _, err := os.Stat(filepath.Join(c.dir, brokenFile)); err == nil {
		os.Exit(1)
	}
	for ; os.Getppid() == c.parent; time.Sleep(5 * time.Millisecond) {
		if err := c.print(); err != nil {
			return err
		}
	}
	return nil
}

func (c *journalctl) set(arg string) (err error) {
	name, value, _ := strings.Cut(arg, "=")
	switch name {
	case "--since":
		c.since, err = strconv.ParseInt(strings.TrimPrefix(value, "@"), 10, 64)
		c.since *= 1e6
	case "--cursor":
		c.next, err = numberOf(value)
	case "--identifier", "SYSLOG_IDENTIFIER":
		c.identifiers = append(c.identifiers, value)
	case "--unit", "_SYSTEMD_UNIT":
		c.units = append(c.units, value)
	case "--output-fields":
		c.fields = strings.Split(value, ",")
	default:
		err = fmt.Errorf("unknown argument %s", arg)
	}
	return err
}

// numberOf returns the number of the entry with a cursor.
func numberOf(cursor string) (n uint64, err error) {
	if _, err := fmt.Sscanf(cursor, "s=f00;i=%x;", &n); err != nil {
		return 0, fmt.Errorf("failed to seek to cursor: %w", err)
	}
	return n, nil
}

// killed returns how often a journalctl was killed.
func (c *journalctl) killed() int64 {
	if info, err := os.Stat(filepath.Join(c.dir, killsFile)); err == nil {
		return info.Size()
	}
	return 0
}

// print prints the entries that are new.
func (c *journalctl) print() error {
	dies := c.killed() != c.kills
	file := filepath.Join(c.dir, entriesFile)
	info, err := os.Stat(file)
	if err != nil {
		return err
	}
	var data []byte
	if c.entries == nil || dies || info.Size() != c.entries.Size() || !os.SameFile(info, c.entries) {
		if data, err = os.ReadFile(file); err != nil {
			return err
		}
	}
	c.entries = info
	for line := range bytes.Lines(data) {
		var e Entry
		if !bytes.HasSuffix(line, []byte{'\n'}) {
			c.entries = nil // it is being written
			break
		}
		if err := json.Unmarshal(line, &e); err != nil {
			return err
		}
		n, err := numberOf(e.Cursor)
		if err != nil {
			return err
		}
		if n < c.next || !c.selects(&e) {
			continue
		}
		text, err := json.Marshal(c.printed(&e))
		if err != nil {
			return err
		}
		if dies {
			_, _ = os.Stdout.Write(text[:len(text)/2]) // the end is not printed
			break
		}
		if _, err := os.Stdout.Write(append(text, '\n')); err != nil {
			return err
		}
		c.next = n + 1
	}
	if dies {
		os.Exit(137)
	}
	return nil
}

// printed returns the fields of an entry that journalctl prints.
func (c *journalctl) printed(e *Entry) map[string]string {
	all := map[string]string{"MESSAGE": e.Message, "SYSLOG_IDENTIFIER": e.Identifier, "_SYSTEMD_UNIT": e.Unit, "_HOSTNAME": "gate", "_PID": "812"}
	maps.DeleteFunc(all, func(name, _ string) bool { return !slices.Contains(c.fields, name) })
	all["__CURSOR"], all["__REALTIME_TIMESTAMP"] = e.Cursor, e.Time
	return all
}

func (c *journalctl) selects(e *Entry) bool {
	at, err := strconv.ParseInt(e.Time, 10, 64)
	return err == nil && at >= c.since && (c.identifiers == nil || slices.Contains(c.identifiers, e.Identifier)) &&
		(c.units == nil || slices.Contains(c.units, e.Unit))
}
