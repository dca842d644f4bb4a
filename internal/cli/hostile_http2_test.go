package cli

import (
	"crypto/tls"
	"encoding/binary"
	"errors"
	"io"
	"os"
	"sync/atomic"
	"time"
)

// protocolAttacks are of clients that speak HTTP/2.
var protocolAttacks = []attack{
	{"many streams", withTLS, manyStreams, fault{"internal/server/httpapi/server.go", "streams of one connection", []string{"maxStreams    = 64", "maxStreams    = 1 << 16"}}},
	{"streams that are reset", withTLS, rapidReset, fault{"internal/server/httpapi/server.go", "streams that were reset", []string{"maxStreams    = 64", "maxStreams    = 1 << 20"}}},
	{"headers without an end", withTLS, endlessHeaders, fault{"internal/server/httpapi/server.go", "bytes of headers", []string{"maxHeader     = 60 << 10", "maxHeader     = 1 << 30"}}},
}

// The types and flags of frames of HTTP/2.
const (
	frameData         = 0
	frameHeaders      = 1
	frameReset        = 3
	frameSettings     = 4
	frameContinuation = 9

	endStream  = 1
	endHeaders = 4
)

// frame returns a frame of HTTP/2.
func frame(kind, flags byte, stream uint32, payload []byte) []byte {
	b := make([]byte, 9, 9+len(payload))
	b[0], b[1], b[2], b[3], b[4] = byte(len(payload)>>16), byte(len(payload)>>8), byte(len(payload)), kind, flags
	binary.BigEndian.PutUint32(b[5:], stream)
	return append(b, payload...)
}

// request returns the headers of GET path, in HPACK without compression.
func request(path string) []byte {
	b := append([]byte{0x82, 0x87, 0x41, 9}, "localhost"...)
	return append(append(b, 0x44, byte(len(path))), path...)
}

// http2 opens a connection of HTTP/2, or returns nil if the server does not let it in.
func (h *attacked) http2() *tls.Conn {
	raw := h.open(h.http)
	if raw == nil {
		return nil
	}
	raw.SetDeadline(time.Now().Add(maxHeld))
	conn := tls.Client(raw, &tls.Config{InsecureSkipVerify: true, NextProtos: []string{"h2"}})
	if _, err := conn.Write(append([]byte("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"), frame(frameSettings, 0, 0, nil)...)); err != nil {
		raw.Close()
		return nil
	}
	return conn
}

// frames calls each with the received frames, until it returns false or the connection ends.
func frames(conn io.Reader, each func(kind, flags byte, stream uint32) bool) error {
	head := make([]byte, 9)
	for {
		if _, err := io.ReadFull(conn, head); err != nil {
			return err
		}
		n := int64(head[0])<<16 | int64(head[1])<<8 | int64(head[2])
		if _, err := io.CopyN(io.Discard, conn, n); err != nil {
			return err
		}
		if !each(head[3], head[4], binary.BigEndian.Uint32(head[5:])) {
			return nil
		}
	}
}

// manyStreams opens 2,000 streams of events on each connection: the server answers 64 of them at a time.
func manyStreams(h *attacked) {
	var most atomic.Int64
	h.during(func() {
		h.attackers(16, func(int) {
			conn := h.http2()
			if conn == nil {
				return
			}
			defer conn.Close()
			go func() {
				for id := uint32(1); id < 4000; id += 2 {
					if _, err := conn.Write(frame(frameHeaders, endHeaders|endStream, id, request("/v1/events"))); err != nil {
						return
					}
				}
			}()
			conn.SetReadDeadline(time.Now().Add(attackTime))
			open := map[uint32]bool{} // that have an answer, which goes on
			_ = frames(conn, func(kind, flags byte, stream uint32) bool {
				switch {
				case kind == frameReset, flags&endStream != 0 && (kind == frameHeaders || kind == frameData):
					delete(open, stream)
				case kind == frameHeaders:
					open[stream] = true
				}
				for n, was := int64(len(open)), most.Load(); n > was && !most.CompareAndSwap(was, n); was = most.Load() {
				}
				return true
			})
		})
	})
	if n := most.Load(); n > 64 || n == 0 {
		h.Errorf("%d streams of one connection are open; want 1 to 64", n)
	}
}

// rapidReset opens 5,000 streams on each connection and resets each at once, so that the client never has more than one
// open.
func rapidReset(h *attacked) {
	var burst []byte
	for id := uint32(1); id < 10_000; id += 2 {
		burst = append(burst, frame(frameHeaders, endHeaders|endStream, id, request("/v1/rates?points=60"))...)
		burst = append(burst, frame(frameReset, 0, id, []byte{0, 0, 0, 8})...)
	}
	h.during(func() {
		h.attackers(16, func(int) {
			for end := time.Now().Add(attackTime); time.Now().Before(end); time.Sleep(200 * time.Millisecond) {
				conn := h.http2()
				if conn == nil {
					return
				}
				if _, err := conn.Write(burst); err == nil {
					conn.SetReadDeadline(time.Now().Add(time.Second))
					_ = frames(conn, func(_, _ byte, _ uint32) bool { return true })
				}
				conn.Close()
			}
		})
	})
	const most = 128 // MiB: 5,000 requests at work on each connection take twice that
	if rss := h.resident(); rss > most {
		h.Errorf("%d MiB are resident after streams that were reset; want at most %d", rss, most)
	}
}

// endlessHeaders sends headers that go on and on in further frames.
func endlessHeaders(h *attacked) {
	const most = 64 << 20
	var largest atomic.Int64
	block := make([]byte, 0, 16_000)
	for len(block) < 15_000 {
		block = append(block, 0x00, 1, 'x', 100)
		block = append(block, make([]byte, 100)...)
		for i := len(block) - 100; i < len(block); i++ {
			block[i] = 'y'
		}
	}
	h.during(func() {
		h.attackers(16, func(int) {
			conn := h.http2()
			if conn == nil {
				return
			}
			defer conn.Close()
			go func() { _, _ = io.Copy(io.Discard, conn) }()
			sent := int64(0)
			_, err := conn.Write(frame(frameHeaders, endStream, 1, request("/v1/status")))
			for err == nil && sent < most {
				_, err = conn.Write(frame(frameContinuation, 0, 1, block))
				sent += int64(len(block))
			}
			if errors.Is(err, os.ErrDeadlineExceeded) {
				h.held.Add(1)
			}
			for was := largest.Load(); sent > was && !largest.CompareAndSwap(was, sent); was = largest.Load() {
			}
		})
	})
	if n := largest.Load(); n >= most {
		h.Errorf("the server took %d bytes of headers for one request", n)
	}
}
