package journal_test

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/lately-go/lately/internal/server/journal"
	"github.com/lately-go/lately/internal/test/must"
)

func TestSnapshotRoundTrip(t *testing.T) {
	path := filepath.Join(t.TempDir(), "state")
	d, found := restored(t, path, ignored)
	if found.Snapshot != 0 || !found.Written.IsZero() || found.Problems != nil {
		t.Fatalf("an empty directory: %+v", found)
	}
	// Records from nothing to the longest, so that blocks are of all kinds.
	want := []journal.Record{{Type: 0}, {Type: 255, Data: bytes.Repeat([]byte{7}, journal.MaxRecord)}}
	for i := range 30_000 {
		want = append(want, journal.Record{Type: byte(i), Data: fmt.Appendf(nil, "record %d", i)})
	}
	before := time.Now()
	err := d.WriteSnapshot(func(add func(byte, []byte) error) error {
		for _, r := range want {
			if err := add(r.Type, r.Data); err != nil {
				return err
			}
		}
		return nil
	})
	must.Do(t, errors.Join(err, d.Close()))
	i := 0
	_, found = restored(t, path, func(r journal.Record) error {
		if i >= len(want) || r.Type != want[i].Type || !bytes.Equal(r.Data, want[i].Data) {
			return fmt.Errorf("record %d is another", i)
		}
		i++
		return nil
	})
	if i != len(want) {
		t.Fatalf("read %d of %d", i, len(want))
	}
	if found.Snapshot != uint64(len(want)) || found.Appended != 0 || found.Written.Before(before.Add(-time.Second)) || found.Written.After(time.Now().Add(time.Second)) {
		t.Errorf("%+v", found)
	}
}

func TestUnfinishedSnapshot(t *testing.T) {
	path := filepath.Join(t.TempDir(), "state")
	d := open(t, path)
	must.Do(t, d.WriteSnapshot(fill("good")))
	before := listing(t, path)
	own := errors.New("not today")
	if err := d.WriteSnapshot(func(add func(byte, []byte) error) error {
		return errors.Join(add(1, []byte("half")), own)
	}); !errors.Is(err, own) {
		t.Errorf("%v, want %v", err, own)
	}
	if err := d.WriteSnapshot(func(add func(byte, []byte) error) error {
		_ = add(1, make([]byte, journal.MaxRecord+1)) // an error that is ignored
		_ = add(1, []byte("more"))
		return nil
	}); err == nil || !strings.Contains(err.Error(), "must be up to 1048576") {
		t.Errorf("a record that is too long: %v", err)
	}
	func() {
		defer func() { _ = recover() }()
		_ = d.WriteSnapshot(func(func(byte, []byte) error) error { panic("in fill") })
	}()
	if after := listing(t, path); !slices.Equal(before, after) {
		t.Errorf("the directory was %v and is %v", before, after)
	}
	must.Do(t, d.Close())
	if got := texts(t, path); !slices.Equal(got, []string{"good"}) {
		t.Errorf("read %q", got)
	}
}

// TestChangesOnlyAfterReadingAll fails while the state is read: the directory does not change, and is read again.
func TestChangesOnlyAfterReadingAll(t *testing.T) {
	path := filepath.Join(t.TempDir(), "state")
	d, _, err := journal.Open(path, ignored)
	if err == nil {
		err = errors.Join(d.WriteSnapshot(fill("a", "b")), d.AppendWait([]byte("c")), d.Close())
	}
	if err == nil {
		err = torn(filepath.Join(path, "state"))
	}
	if err != nil {
		t.Fatal(err)
	}
	before := listing(t, path)
	no := errors.New("no")
	for _, last := range []string{"a", "b", "c"} {
		_, _, err := journal.Open(path, func(r journal.Record) error {
			if string(r.Data) == last {
				return no
			}
			return nil
		})
		if !errors.Is(err, no) {
			t.Errorf("until %s: %v, want %v", last, err, no)
		}
		if after := listing(t, path); !slices.Equal(before, after) {
			t.Errorf("until %s: the directory was %v and is %v", last, before, after)
		}
	}
	if got := texts(t, path); !slices.Equal(got, []string{"a", "b", "c"}) {
		t.Errorf("read %q", got)
	}
	d = open(t, path)
	if err := errors.Join(d.WriteSnapshot(fill("a", "b", "c")), d.Close()); err != nil {
		t.Error(err)
	}
	if got := texts(t, path); !slices.Equal(got, []string{"a", "b", "c"}) {
		t.Errorf("read %q", got)
	}
}

// torn appends half a record to a file.
func torn(path string) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_APPEND, 0)
	if err != nil {
		return err
	}
	_, err = f.WriteString("\x07\x00\x00\x00half")
	return errors.Join(err, f.Close())
}

// TestDamageOnDisk changes a byte of each record in turn: the others are read, also after more was appended, and the next
// snapshot has no gap.
func TestDamageOnDisk(t *testing.T) {
	for _, lost := range []string{"snapshot-1", "snapshot-2", "append-1", "append-2"} {
		path := filepath.Join(t.TempDir(), "dir")
		d := open(t, path)
		err := errors.Join(d.WriteSnapshot(fill("snapshot-1", "snapshot-2")), d.AppendWait([]byte("append-1")), d.AppendWait([]byte("append-2")), d.AppendWait([]byte("end")), d.Close())
		state := filepath.Join(path, "state")
		b, err2 := os.ReadFile(state)
		must.Do(t, errors.Join(err, err2))
		b[bytes.Index(b, []byte(lost))]++
		must.Do(t, os.WriteFile(state, b, 0o600))
		want := slices.DeleteFunc([]string{"snapshot-1", "snapshot-2", "append-1", "append-2", "end"}, func(s string) bool { return s == lost })
		var got []string
		d, found := restored(t, path, textsTo(&got))
		if !slices.Equal(got, want) || found.Missing != 1 || found.Damaged != int64(17+len(lost)) || !strings.Contains(fmt.Sprint(found.Problems), state) {
			t.Errorf("without %s: read %q, %+v", lost, got, found)
		}
		if err := errors.Join(d.AppendWait([]byte("more")), d.Close()); err != nil {
			t.Error(err)
		}
		if got := texts(t, path); !slices.Equal(got, append(want, "more")) {
			t.Errorf("without %s and more: read %q", lost, got)
		}
		d = open(t, path)
		if err := errors.Join(d.WriteSnapshot(fill("new")), d.Close()); err != nil {
			t.Error(err)
		}
		if _, found := restored(t, path, ignored); found.Problems != nil {
			t.Errorf("after a snapshot: %+v", found)
		}
	}
}
