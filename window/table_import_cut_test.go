package window

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/lately-go/lately/internal/counting/snapshot"
)

// TestImportOfCutChunk cuts a chunk at any byte: nothing is restored, because the checksum is wrong. With a correct
// checksum the keys before the cut are restored unchanged, and the error reports where the damaged entry begins.
func TestImportOfCutChunk(t *testing.T) {
	windows := []Window{{Span: time.Second, Slot: 100 * time.Millisecond}, {Span: time.Hour}}
	tb := mustTable(t, TableConfig{}, windows...)
	start := time.Unix(1_700_000_000, 0)
	const keys = 20
	for i := range 500 {
		at := start.Add(time.Duration(i) * time.Minute / 10)
		tb.AddAt(at, fmt.Sprint("key ", i%keys), uint64(1+i%7*(1<<15))) // some outgrow 16 bits
	}
	now := start.Add(50 * time.Minute)
	chunk := exportedTable(tb, now)[0]

	_, r, _, err := snapshot.Open(chunk, snapshot.Table)
	if err != nil {
		t.Fatal(err)
	}
	body := chunk[:r.Offset()+r.Len()]
	whole, head := 0, 0 // entries before the cut, and bytes up to the end of the last one
	for cut := range len(body) + 1 {
		into := mustTable(t, TableConfig{}, windows...)
		if did, err := into.ImportAt(now, chunk[:cut]); err == nil || did != (Imported{}) || into.Len() > 0 {
			t.Fatalf("cut at %d without a checksum: %+v, %v", cut, did, err)
		}
		did, err := into.ImportAt(now, snapshot.Seal(slices.Clone(body[:cut])))
		if err == nil { // the cut is between two entries
			if head > 0 {
				whole++
			}
			head = cut
		} else if want := fmt.Sprintf("damaged after %d of %d bytes", head, cut+4); head > 0 && !strings.Contains(err.Error(), want) {
			t.Fatalf("cut at %d: %v; want %s", cut, err, want)
		}
		if did.Keys != whole || into.Len() != whole || did.Expired+did.Kept+did.Refused > 0 {
			t.Fatalf("cut at %d: %+v, %d keys held; want %d", cut, did, into.Len(), whole)
		}
		for i := range keys {
			key := fmt.Sprint("key ", i)
			if got, want := into.SumAt(now, key), tb.SumAt(now, key); got != want && got != 0 {
				t.Fatalf("cut at %d: %q has %d, want %d", cut, key, got, want)
			}
		}
	}
	if whole != keys {
		t.Errorf("%d of %d keys in the whole chunk", whole, keys)
	}
}
