package engine

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/lately-go/lately/api"
	"github.com/lately-go/lately/internal/secret"
	"github.com/lately-go/lately/internal/server/apierror"
	"github.com/lately-go/lately/ratelimit"
)

// An id is what a client holds of a decision: all that must be known to settle its reservation, and to count its answer, sealed
// with AES-GCM under a key of the server's secret. So it is readable and can be made by servers of that secret only, and no
// server remembers the ids that it has given out.
type id struct {
	life   uint64           // of the server that made it, see lives
	asked  request          // that ends at 0 if the id is not for an answer
	ticket ratelimit.Ticket // that ends at 0 if the id is not for a settlement
}

// ids makes and opens the texts of ids.
type ids struct {
	sealer atomic.Pointer[sealer]
	prefix [4]byte       // of the nonces of this process: with count, no two servers use one twice
	count  atomic.Uint64 // begins at a random number
}

// A sealer is the cipher of one secret.
type sealer struct {
	of   secret.Value
	aead cipher.AEAD
}

func (s *ids) init() {
	var start [8]byte
	_, _ = rand.Read(s.prefix[:]) // it never fails
	_, _ = rand.Read(start[:])
	s.count.Store(binary.LittleEndian.Uint64(start[:]))
}

const (
	keySize   = 16 // AES-128 takes a quarter less time than AES-256
	nonceSize = 12
	tagSize   = 16

	// maxID bounds the bytes of a text that is opened: keys are up to keys.Max for each field.
	maxID = 1 << 20
)

// cipher returns the cipher for the secret of now.
func (s *ids) cipher(from *secret.Secret) cipher.AEAD {
	of := from.Value()
	if c := s.sealer.Load(); c != nil && c.of == of {
		return c.aead
	}
	key := from.Key("decision") // nothing else is sealed with it
	block, err := aes.NewCipher(key[:keySize])
	if err != nil {
		panic(err) // the size of the key is right
	}
	aead, err := cipher.NewGCM(block)
	if err != nil {
		panic(err) // so is that of the block
	}
	s.sealer.Store(&sealer{of, aead})
	return aead
}

// seal appends the text of x to dst, with the memory of plain.
func (s *ids) seal(from *secret.Secret, dst, plain []byte, x *id) (text, used []byte) {
	sealed := append(plain[:0], s.prefix[:]...)
	sealed = binary.LittleEndian.AppendUint64(sealed, s.count.Add(1))
	sealed = appendID(sealed, x)
	sealed = s.cipher(from).Seal(sealed[:nonceSize], sealed[:nonceSize], sealed[nonceSize:], nil)
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

// open returns the id of a text, and its number, which no other id has. Its fields are not in the memory of text.
func (s *ids) open(from *secret.Secret, text string) (x id, number uint64, err error) {
	if len(text) > maxID || strings.ContainsAny(text, "\r\n") { // which the encoding ignores
		return x, 0, errID
	}
	sealed, err := base64.RawURLEncoding.Strict().DecodeString(text)
	if err != nil || len(sealed) < nonceSize+tagSize {
		return x, 0, errID
	}
	nonce := sealed[:nonceSize]
	plain, err := s.cipher(from).Open(nil, nonce, sealed[nonceSize:], nil)
	if err != nil {
		return x, 0, errID
	}
	if x, err = decodeID(plain); err != nil {
		return x, 0, errID
	}
	x.ticket.ID = base64.RawURLEncoding.EncodeToString(nonce)
	return x, binary.LittleEndian.Uint64(nonce[len(s.prefix):]), nil
}

// appendID appends an id without its number.
func appendID(dst []byte, x *id) []byte {
	dst = binary.LittleEndian.AppendUint64(dst, x.life)
	dst = x.asked.append(dst)
	t := &x.ticket
	if t.Ends.IsZero() {
		return dst
	}
	dst = binary.LittleEndian.AppendUint64(dst, uint64(t.At))
	dst = binary.AppendVarint(dst, t.Ends.UnixMilli()-t.At/int64(time.Millisecond))
	dst = binary.AppendUvarint(dst, t.Cost)
	for i := range t.Charges {
		c := &t.Charges[i]
		dst = appendBytes(dst, c.Rule)
		if i > 0 && string(c.Key) == string(t.Charges[i-1].Key) {
			dst = append(dst, 0) // no key is empty
		} else {
			dst = appendBytes(dst, c.Key)
		}
		dst = binary.LittleEndian.AppendUint32(dst, c.Form)
		dst = binary.AppendUvarint(dst, c.Mark)
	}
	return dst
}

// millisOf returns t in milliseconds since 1970, and 0 for the zero time.
func millisOf(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixMilli()
}

// timeOf returns the time of which millisOf returns ms.
func timeOf(ms int64) time.Time {
	if ms == 0 {
		return time.Time{}
	}
	return time.UnixMilli(ms)
}

func appendBytes[T string | []byte](dst []byte, b T) []byte {
	return append(binary.AppendUvarint(dst, uint64(len(b))), b...)
}

var errCut = errors.New("engine: an id that is cut")

// decodeID reads what appendID has written.
func decodeID(b []byte) (x id, err error) {
	d := decoder{b: b}
	x.life = d.fixed(8)
	x.asked = d.request()
	if d.err == nil && len(d.b) == 0 {
		return x, nil
	}
	x.ticket.At = int64(d.fixed(8))
	x.ticket.Ends = time.UnixMilli(x.ticket.At/int64(time.Millisecond) + d.varint())
	x.ticket.Cost = d.uvarint()
	for d.err == nil && len(d.b) > 0 {
		c := ratelimit.TicketCharge{Rule: string(d.bytes())}
		if c.Key = d.bytes(); len(c.Key) == 0 {
			if len(x.ticket.Charges) == 0 {
				return id{}, errCut
			}
			c.Key = x.ticket.Charges[len(x.ticket.Charges)-1].Key
		}
		c.Form = uint32(d.fixed(4))
		c.Mark = d.uvarint()
		x.ticket.Charges = append(x.ticket.Charges, c)
	}
	if d.err != nil {
		return id{}, d.err
	}
	return x, nil
}

// A decoder reads values until the first error, and zeros after it.
type decoder struct {
	b   []byte
	err error
}

func (d *decoder) take(n int) []byte {
	if d.err != nil || n <= 0 || n > len(d.b) {
		d.err = errCut
		return nil
	}
	head := d.b[:n]
	d.b = d.b[n:]
	return head
}

func (d *decoder) fixed(size int) (n uint64) {
	for i, c := range d.take(size) {
		n |= uint64(c) << (8 * i)
	}
	return n
}

func (d *decoder) varint() int64 {
	n, size := binary.Varint(d.b)
	d.take(size)
	return n
}

func (d *decoder) uvarint() uint64 {
	n, size := binary.Uvarint(d.b)
	d.take(size)
	return n
}

func (d *decoder) bytes() []byte {
	n := d.uvarint()
	if n == 0 {
		return nil
	}
	return d.take(int(min(n, maxID)))
}
