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
)

func TestSnapshotRoundTrip(t *testing.T) {
	path := filepath.Join(t.TempDir(), "state")
	d, found := restored(t, path, ignored)
	if info := found.Snapshot; info.Generation != 0 || !info.Written.IsZero() || info.Problems != nil {
		t.Fatalf("an empty directory: %+v", info)
	}
	// Records from nothing to the longest, so that blocks are of all kinds.
	want := []journal.Record{{Type: 0}, {Type: 255, Data: bytes.Repeat([]byte{7}, journal.MaxRecord)}}
	for i := range 30_000 {
		want = append(want, journal.Record{Type: byte(i), Data: fmt.Appendf(nil, "record %d", i)})
	}
	before := time.Now()
	err := d.WriteSnapshot(func(w *journal.SnapshotWriter) error {
		for _, r := range want {
			if err := w.Add(r.Type, r.Data); err != nil {
				return err
			}
		}
		return nil
	})
	if err := errors.Join(err, d.Close()); err != nil {
		t.Fatal(err)
	}
	i := 0
	_, found = restored(t, path, journal.Restore{Journal: ignored.Journal, Snapshot: func(r journal.Record) error {
		if i >= len(want) || r.Type != want[i].Type || !bytes.Equal(r.Data, want[i].Data) {
			return fmt.Errorf("record %d is another", i)
		}
		i++
		return nil
	}})
	if i != len(want) {
		t.Fatalf("read %d of %d", i, len(want))
	}
	if info := found.Snapshot; info.Generation != 1 || info.Records != uint64(len(want)) || info.Written.Before(before.Add(-time.Second)) || info.Written.After(time.Now().Add(time.Second)) {
		t.Errorf("%+v", info)
	}
}

func TestSnapshotThatIsNotFinished(t *testing.T) {
	path := filepath.Join(t.TempDir(), "state")
	d := open(t, path)
	if err := d.WriteSnapshot(fill("good")); err != nil {
		t.Fatal(err)
	}
	before := listing(t, path)
	own := errors.New("not today")
	if err := d.WriteSnapshot(func(w *journal.SnapshotWriter) error {
		return errors.Join(w.Add(1, []byte("half")), own)
	}); !errors.Is(err, own) {
		t.Errorf("%v, want %v", err, own)
	}
	if err := d.WriteSnapshot(func(w *journal.SnapshotWriter) error {
		_ = w.Add(1, make([]byte, journal.MaxRecord+1)) // an error that is ignored
		_ = w.Add(1, []byte("more"))
		return nil
	}); err == nil || !strings.Contains(err.Error(), "must be up to 1048576") {
		t.Errorf("a record that is too long: %v", err)
	}
	func() {
		defer func() { _ = recover() }()
		_ = d.WriteSnapshot(func(*journal.SnapshotWriter) error { panic("in fill") })
	}()
	if after := listing(t, path); !slices.Equal(before, after) {
		t.Errorf("the directory was %v and is %v", before, after)
	}
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
	if got := texts(t, path); !slices.Equal(got, []string{"good"}) {
		t.Errorf("read %q", got)
	}
}

// TestNothingIsChangedUntilAllIsRead fails while the state is read: the directory stays as
// it is, and is read again.
func TestNothingIsChangedUntilAllIsRead(t *testing.T) {
	path := filepath.Join(t.TempDir(), "state")
	d, _, err := journal.Open(path, ignored)
	if err == nil {
		err = errors.Join(d.WriteSnapshot(fill("a", "b")), d.Journal().AppendWait([]byte("c")), d.Close())
	}
	if err == nil {
		err = os.WriteFile(filepath.Join(path, "snapshot-00000007"), []byte("damaged"), 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	before := listing(t, path)
	no := errors.New("no")
	for what, r := range map[string]journal.Restore{
		"half of the snapshot": {Snapshot: func(journal.Record) error { return no }, Journal: ignored.Journal},
		"half of the journal":  {Snapshot: ignored.Snapshot, Journal: func([]byte) error { return no }},
	} {
		if _, _, err := journal.Open(path, r); !errors.Is(err, no) {
			t.Errorf("%s: %v, want %v", what, err, no)
		}
		if after := listing(t, path); !slices.Equal(before, after) {
			t.Errorf("%s: the directory was %v and is %v", what, before, after)
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

// TestDamagedSnapshotIsKept damages the newest on a real disk, and reads again.
func TestDamagedSnapshotIsKept(t *testing.T) {
	path := filepath.Join(t.TempDir(), "state")
	d, _, err := journal.Open(path, ignored)
	if err == nil {
		err = errors.Join(d.WriteSnapshot(fill("old")), d.Journal().AppendWait([]byte("since")), d.WriteSnapshot(fill("old", "since")), d.Close())
	}
	newest := filepath.Join(path, "snapshot-00000002")
	b, err2 := os.ReadFile(newest)
	if err := errors.Join(err, err2); err != nil {
		t.Fatal(err)
	}
	b[len(b)/2] ^= 1
	if err := os.WriteFile(newest, b, 0o600); err != nil {
		t.Fatal(err)
	}
	var got []string
	d, found := restored(t, path, textsTo(&got))
	if info := found.Snapshot; info.Generation != 1 || len(info.Problems) != 1 || !strings.Contains(info.Problems[0].Error(), newest) {
		t.Errorf("%+v", info)
	}
	if !slices.Equal(got, []string{"old", "since"}) {
		t.Errorf("read %q", got)
	}
	if kept, err := os.ReadFile(newest + ".bad"); err != nil || !bytes.Equal(kept, b) {
		t.Errorf("the damaged file is not kept: %v", err)
	}
	if err := d.WriteSnapshot(fill("new")); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(path, "snapshot-00000003")); err != nil {
		t.Errorf("the number of the damaged one was used again: %v", err)
	}
}
