package reservations

import (
	"bytes"
	"encoding/base64"
	"reflect"
	"testing"
	"time"

	"github.com/lately-go/lately/internal/batch"
	"github.com/lately-go/lately/internal/store/secret"
	"github.com/lately-go/lately/internal/test/randtest"
)

// someIDs are ids of several forms.
var someIDs = []ID{
	{},
	{Life: 1, Ticket: batch.Ticket{At: 1, Ends: time.UnixMilli(2), Cost: 3}},
	{Life: 2, Asked: Request{Ends: time.UnixMilli(5), Form: 1 << 31, Fields: []Field{{"client", []byte("192.0.2.1")}, {"path", []byte("/login")}}}},
	{Life: 1<<64 - 1, Ticket: batch.Ticket{At: -1, Ends: time.UnixMilli(1 << 40), Cost: 1 << 31, Charges: []batch.Charge{
		{Rule: "tokens", Key: []byte("ada"), Form: 1 << 31, Mark: batch.AnyMark},
		{Rule: "fleet", Key: []byte("ada"), Form: 7, Mark: 1 << 32},
		{Rule: "", Key: bytes.Repeat([]byte{0}, 300)},
	}}},
}

func (x ID) equal(y ID) bool {
	return reflect.DeepEqual(x, y)
}

func TestIDs(t *testing.T) {
	s := NewSealer(secret.New())
	numbers := map[uint64]bool{}
	for _, x := range someIDs {
		text, _ := s.Seal(nil, nil, &x)
		y, number, err := s.Open(string(text))
		if y.Ticket.ID = ""; err != nil || !x.equal(y) || numbers[number] {
			t.Errorf("%+v is opened as %+v, %v, number %d", x, y, err, number)
		}
		numbers[number] = true
	}
}

func TestTextOfIDs(t *testing.T) {
	rnd := randtest.New(t)
	for range 10_000 {
		b := make([]byte, rnd.IntN(100))
		for i := range b {
			b[i] = byte(rnd.Uint32())
		}
		if text, _ := appendText([]byte("id "), b); string(text) != "id "+base64.RawURLEncoding.EncodeToString(b) {
			t.Fatalf("%x is %s", b, text)
		}
	}
}

// FuzzID reads bytes as the contents of an id, which only a server with the secret can have sealed: without a panic, and what
// it reads is read again from what it writes.
func FuzzID(f *testing.F) {
	for i := range someIDs {
		b := appendID(nil, &someIDs[i])
		f.Add(b)
		f.Add(b[:len(b)-1])
	}
	f.Add([]byte{})
	f.Add(bytes.Repeat([]byte{0xff}, 40))
	f.Fuzz(func(t *testing.T, b []byte) {
		x, ok := decodeID(b)
		if !ok {
			if !reflect.DeepEqual(x, ID{}) {
				t.Fatalf("%x: not an id, and %+v", b, x)
			}
			return
		}
		y, ok := decodeID(appendID(nil, &x))
		if !ok || !x.equal(y) {
			t.Fatalf("%x is read as %+v, and then as %+v, %v", b, x, y, ok)
		}
	})
}

// FuzzIDText opens any text: it is an id only if it equals the text of that id.
func FuzzIDText(f *testing.F) {
	s := NewSealer(secret.New())
	text, _ := s.Seal(nil, nil, &someIDs[3])
	for _, seed := range []string{"", "AAAA", string(text), string(text[1:]), string(text[:len(text)-1]), string(text) + "\n"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, other string) {
		if _, _, err := s.Open(other); (err == nil) != (other == string(text)) {
			t.Fatalf("%q: %v", other, err)
		}
	})
}
