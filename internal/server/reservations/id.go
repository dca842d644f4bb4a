package reservations

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"encoding/base64"
	"encoding/binary"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/lately-go/lately/api"
	"github.com/lately-go/lately/internal/batch"
	"github.com/lately-go/lately/internal/counting/snapshot"
	"github.com/lately-go/lately/internal/server/apierror"
	"github.com/lately-go/lately/internal/server/keptevents"
	"github.com/lately-go/lately/internal/store/secret"
)

// An ID is what a client holds of a decision: all that must be known to settle its reservation, and to count its answer, sealed
// with AES-GCM under a key of the server's secret. So it is readable and can be made by servers of that secret only, and no
// server remembers the ids that it has given out.
type ID struct {
	Life   uint64       // of the server that made it, see Lives
	Asked  Request      // that ends at 0 if the id is not for an answer
	Ticket batch.Ticket // that ends at 0 if the id is not for a settlement
}

// A Request is the part of an id by which the answer to a request is counted: the fields that rules about answers need.
type Request struct {
	Ends   time.Time        // then it can no longer be reported
	Place  keptevents.Place // where the process that has judged it keeps it, or 0
	Form   uint32           // identifies the rules that need these fields
	Fields []Field
}

// A Field is a field of a request.
type Field struct {
	Name  string
	Value []byte
}

// A Sealer makes and opens the texts of ids. It is safe for concurrent use. Make one with [NewSealer].
type Sealer struct {
	secret *secret.Secret
	sealed atomic.Pointer[sealed]
	prefix [4]byte       // of the nonces of this process: with count, no two servers use one twice
	count  atomic.Uint64 // begins at a random number
}

// sealed is the cipher of one secret.
type sealed struct {
	of   secret.Value
	aead cipher.AEAD
}

// NewSealer returns a Sealer with a key of from.
func NewSealer(from *secret.Secret) *Sealer {
	s := &Sealer{secret: from}
	var start [8]byte
	_, _ = rand.Read(s.prefix[:]) // it never fails
	_, _ = rand.Read(start[:])
	s.count.Store(binary.LittleEndian.Uint64(start[:]))
	return s
}

const (
	keySize   = 16 // AES-128 takes a quarter less time than AES-256
	nonceSize = 12
	tagSize   = 16

	// maxID bounds the bytes of a text that is opened: keys are up to keys.Max for each field.
	maxID = 1 << 20
)

// cipher returns the cipher for the secret of now.
func (s *Sealer) cipher() cipher.AEAD {
	of := s.secret.Value()
	if c := s.sealed.Load(); c != nil && c.of == of {
		return c.aead
	}
	key := s.secret.Key("decision") // nothing else is sealed with it
	block, err := aes.NewCipher(key[:keySize])
	if err != nil {
		panic(err) // the size of the key is right
	}
	aead, err := cipher.NewGCM(block)
	if err != nil {
		panic(err) // the size of the block is right, too
	}
	s.sealed.Store(&sealed{of, aead})
	return aead
}

// Seal appends the text of x to dst, with the memory of plain.
func (s *Sealer) Seal(dst, plain []byte, x *ID) (text, used []byte) {
	sealed := append(plain[:0], s.prefix[:]...)
	sealed = binary.LittleEndian.AppendUint64(sealed, s.count.Add(1))
	sealed = appendID(sealed, x)
	sealed = s.cipher().Seal(sealed[:nonceSize], sealed[:nonceSize], sealed[nonceSize:], nil)
	return appendText(dst, sealed)
}

// appendText appends b in the base64 of RFC 4648 for URLs, without padding. It is encoding/base64 in half the
// steps: eight characters at once. It appends to b, and returns that for its memory.
func appendText(dst, b []byte) (text, used []byte) {
	const digits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
	end := len(dst) + base64.RawURLEncoding.EncodedLen(len(b))
	used = append(b, "\x00\x00\x00\x00\x00\x00\x00\x00"...)
	text = slices.Grow(dst, end-len(dst)+8)[:end+8]
	for i, at := 0, len(dst); at < end; i, at = i+6, at+8 { // the last characters may be beyond the end
		x, to := binary.BigEndian.Uint64(used[i:]), (*[8]byte)(text[at:])
		to[0], to[1], to[2], to[3] = digits[x>>58], digits[x>>52&63], digits[x>>46&63], digits[x>>40&63]
		to[4], to[5], to[6], to[7] = digits[x>>34&63], digits[x>>28&63], digits[x>>22&63], digits[x>>16&63]
	}
	return text[:end], used
}

var errID = apierror.New(api.BadID, "id: not one that this server or one of its store gave out, or its secret has changed since: must be the id of a decision")

// Open returns the id of a text, and its number, which no other id has. Its fields are not in the memory of text.
func (s *Sealer) Open(text string) (x ID, number uint64, err error) {
	if len(text) > maxID || strings.ContainsAny(text, "\r\n") { // which the encoding ignores
		return x, 0, errID
	}
	sealed, err := base64.RawURLEncoding.Strict().DecodeString(text)
	if err != nil || len(sealed) < nonceSize+tagSize {
		return x, 0, errID
	}
	nonce := sealed[:nonceSize]
	plain, err := s.cipher().Open(nil, nonce, sealed[nonceSize:], nil)
	if err != nil {
		return x, 0, errID
	}
	x, ok := decodeID(plain)
	if !ok {
		return x, 0, errID
	}
	x.Ticket.ID = base64.RawURLEncoding.EncodeToString(nonce)
	return x, binary.LittleEndian.Uint64(nonce[len(s.prefix):]), nil
}

// appendID appends an id without its number.
func appendID(dst []byte, x *ID) []byte {
	dst = binary.LittleEndian.AppendUint64(dst, x.Life)
	dst = x.Asked.append(dst)
	t := &x.Ticket
	if t.Ends.IsZero() {
		return dst
	}
	dst = binary.LittleEndian.AppendUint64(dst, uint64(t.At))
	dst = binary.AppendVarint(dst, t.Ends.UnixNano()-t.At)
	dst = binary.AppendUvarint(dst, t.Cost)
	for i := range t.Charges {
		c := &t.Charges[i]
		dst = snapshot.AppendBytes(dst, c.Rule)
		if i > 0 && string(c.Key) == string(t.Charges[i-1].Key) {
			dst = append(dst, 0) // no key is empty
		} else {
			dst = snapshot.AppendBytes(dst, c.Key)
		}
		dst = binary.LittleEndian.AppendUint32(dst, c.Form)
		dst = binary.AppendUvarint(dst, c.Mark)
	}
	return dst
}

func (r *Request) append(dst []byte) []byte {
	if dst = binary.AppendVarint(dst, nanosOf(r.Ends)); r.Ends.IsZero() {
		return dst
	}
	dst = binary.LittleEndian.AppendUint32(dst, r.Form)
	dst = binary.AppendUvarint(dst, uint64(r.Place))
	dst = binary.AppendUvarint(dst, uint64(len(r.Fields)))
	for i := range r.Fields {
		dst = snapshot.AppendBytes(snapshot.AppendBytes(dst, r.Fields[i].Name), r.Fields[i].Value)
	}
	return dst
}

// readRequest reads what Request.append has written.
func readRequest(r *snapshot.Reader) (q Request) {
	if q.Ends = timeOf(r.Varint()); q.Ends.IsZero() {
		return q
	}
	q.Form = uint32(fixed(r, 4))
	q.Place = keptevents.Place(r.Uvarint())
	for n := r.Uvarint(); n > 0 && !r.Failed(); n-- {
		q.Fields = append(q.Fields, Field{string(r.Bytes(maxID)), r.Bytes(maxID)})
	}
	return q
}

// nanosOf returns t in nanoseconds since 1970, and 0 for the zero time.
func nanosOf(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixNano()
}

// timeOf is the inverse of nanosOf.
func timeOf(ns int64) time.Time {
	if ns == 0 {
		return time.Time{}
	}
	return time.Unix(0, ns)
}

// decodeID reads what appendID has written, and reports whether b is that.
func decodeID(b []byte) (ID, bool) {
	r := snapshot.NewReader(b)
	x := ID{Life: fixed(r, 8), Asked: readRequest(r)}
	if r.Len() > 0 {
		readTicket(r, &x.Ticket)
	}
	if r.Failed() {
		return ID{}, false
	}
	return x, true
}

func readTicket(r *snapshot.Reader, t *batch.Ticket) {
	t.At = int64(fixed(r, 8))
	t.Ends = time.Unix(0, t.At+r.Varint())
	t.Cost = r.Uvarint()
	for r.Len() > 0 {
		c := batch.Charge{Rule: string(r.Bytes(maxID)), Key: r.Bytes(maxID)}
		if last := len(t.Charges) - 1; len(c.Key) == 0 && last >= 0 {
			c.Key = t.Charges[last].Key
		} else if len(c.Key) == 0 {
			r.Fail()
		}
		c.Form, c.Mark = uint32(fixed(r, 4)), r.Uvarint()
		t.Charges = append(t.Charges, c)
	}
}

// fixed reads a number of that many bytes, the lowest first.
func fixed(r *snapshot.Reader, size int) (n uint64) {
	for i, c := range r.Next(size) {
		n |= uint64(c) << (8 * i)
	}
	return n
}
