package ratelimit_test

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/lately-go/lately/internal/counting/snapshot"
	"github.com/lately-go/lately/ratelimit"
	"github.com/lately-go/lately/window"
)

// TestImportOfCutChunk cuts chunks of counts and of bans at any byte: nothing is restored, because the checksum is wrong.
// With a correct checksum the entries before the cut are restored, and the error reports where the damaged entry begins.
func TestImportOfCutChunk(t *testing.T) {
	const keys = 20
	r := limitRule(t, "r", per(5, time.Minute))
	r.Ban = &ratelimit.Ban{After: 5, Span: time.Minute, For: time.Hour}
	set := mustSet(t, r)
	m, l := mustMemory(t, set, ratelimit.Config{})
	for i := range 7 * keys {
		takeKeyN(l, second(int64(i)/keys), fmt.Sprint("key ", i%keys), 1)
	}
	seen := 0
	for _, chunk := range exported(m, second(10)) {
		if chunk[0] != 'c' && chunk[0] != 'b' {
			continue // has no entries
		}
		seen++
		whole, head := 0, 0 // entries before the cut, and bytes up to the end of the last one
		body := chunk[:len(chunk)-4]
		for cut := range len(body) + 1 {
			into, _ := mustMemory(t, set, ratelimit.Config{Budget: 1 << 20, Bans: 256})
			if did, err := into.ImportAt(second(10), chunk[:cut]); err == nil || did != (window.Imported{}) {
				t.Fatalf("%c cut at %d without a checksum: %+v, %v", chunk[0], cut, did, err)
			}
			did, err := into.ImportAt(second(10), snapshot.Seal(bytes.Clone(body[:cut])))
			if err == nil { // the cut is between two entries
				if head > 0 {
					whole++
				}
				head = cut
			} else if want := fmt.Sprintf("after %d of %d bytes", head, cut+4); head > 0 && !strings.Contains(err.Error(), want) {
				t.Fatalf("%c cut at %d: %v; want %s", chunk[0], cut, err, want)
			}
			if n := did.Keys + did.Bans; n != whole || did.Expired+did.Kept+did.Refused+did.Unknown > 0 {
				t.Fatalf("%c cut at %d: %+v; want %d", chunk[0], cut, did, whole)
			}
		}
		if whole != keys {
			t.Errorf("%c: %d of %d in the whole chunk", chunk[0], whole, keys)
		}
	}
	if seen != 2 {
		t.Errorf("%d chunks with entries, want 2", seen)
	}
}
