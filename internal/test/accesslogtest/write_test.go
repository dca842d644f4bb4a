package accesslogtest_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"net/netip"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/lately-go/lately/internal/test/accesslogtest"
	"github.com/lately-go/lately/internal/test/must"
)

func write(t *testing.T, c accesslogtest.Config) ([]byte, accesslogtest.Truth) {
	t.Helper()
	var b bytes.Buffer
	truth, err := accesslogtest.Write(&b, c)
	if err != nil {
		t.Fatalf("Write(%+v): %v", c, err)
	}
	return b.Bytes(), truth
}

// The bytes are part of what the package promises. If a sum changes on purpose,
// add a line to the change log; if it differs on one platform only, the
// generator is not deterministic.
func TestBytesAreTheSameEverywhere(t *testing.T) {
	for _, tt := range []struct {
		config accesslogtest.Config
		sum    string
	}{
		{accesslogtest.Config{}, "7260709237ca02e6"},
		{accesslogtest.Config{Seed: 7, Lines: 5000, Duration: time.Hour}, "16da05b2beb826b3"},
	} {
		log, _ := write(t, tt.config)
		sum := sha256.Sum256(log)
		if got := hex.EncodeToString(sum[:8]); got != tt.sum {
			t.Errorf("%+v: the SHA-256 of the log begins with %s, want %s", tt.config, got, tt.sum)
		}
	}
}

func TestSeedChoosesTheLog(t *testing.T) {
	one, _ := write(t, accesslogtest.Config{Lines: 2000, Seed: 1})
	again, _ := write(t, accesslogtest.Config{Lines: 2000, Seed: 1})
	two, _ := write(t, accesslogtest.Config{Lines: 2000, Seed: 2})
	if !bytes.Equal(one, again) {
		t.Error("the same seed gave two different logs")
	}
	if bytes.Equal(one, two) {
		t.Error("two seeds gave the same log")
	}
}

func TestNightIsQuiet(t *testing.T) {
	c := accesslogtest.Config{Lines: 20_000}
	log, _ := write(t, c)
	events, _ := read(t, log)
	var hours [24]int
	for _, e := range events {
		hours[e.sec/3600%24]++
	}
	if night, evening := hours[3], hours[19]; night*4 > evening || night == 0 {
		t.Errorf("%d events from 3 to 4 o'clock and %d from 19 to 20, want a quiet night and a busy evening", night, evening)
	}
}

func TestAddressesAreReserved(t *testing.T) {
	var reserved []netip.Prefix
	for _, p := range []string{"192.0.2.0/24", "198.51.100.0/24", "203.0.113.0/24", "198.18.0.0/15", "2001:db8::/32"} {
		reserved = append(reserved, netip.MustParsePrefix(p))
	}
	c := accesslogtest.Config{Lines: 200_000}
	log, _ := write(t, c)
	events, _ := read(t, log)
	for _, e := range events {
		a := must.Get(netip.ParseAddr(e.client))(t)
		if !slices.ContainsFunc(reserved, func(p netip.Prefix) bool { return p.Contains(a) }) {
			t.Fatalf("client %s is a real address", a)
		}
		if a.String() != e.client {
			t.Fatalf("client %q is not written the usual way, %q", e.client, a)
		}
	}
}

func TestBadConfig(t *testing.T) {
	for _, tt := range []struct {
		config accesslogtest.Config
		want   []string // words of the error
	}{
		{accesslogtest.Config{Lines: -1}, []string{"Lines", "-1", "1000000000"}},
		{accesslogtest.Config{Lines: 1_000_000_001}, []string{"Lines", "1000000001"}},
		{accesslogtest.Config{Duration: 1500 * time.Millisecond}, []string{"Duration", "1.5s", "whole seconds"}},
		{accesslogtest.Config{Duration: -time.Hour}, []string{"Duration", "-1h0m0s"}},
	} {
		var b bytes.Buffer
		truth, err := accesslogtest.Write(&b, tt.config)
		if err == nil {
			t.Errorf("%+v is accepted", tt.config)
			continue
		}
		for _, w := range tt.want {
			if !strings.Contains(err.Error(), w) {
				t.Errorf("%+v: error %q does not contain %q", tt.config, err, w)
			}
		}
		if b.Len() > 0 || !reflect.DeepEqual(truth, accesslogtest.Truth{}) {
			t.Errorf("%+v: something was written before the error", tt.config)
		}
	}
}

var errFull = errors.New("disk full")

// A fullDisk accepts this many bytes.
type fullDisk struct{ left int }

func (d *fullDisk) Write(p []byte) (int, error) {
	n := min(len(p), d.left)
	d.left -= n
	if n < len(p) {
		return n, errFull
	}
	return n, nil
}

func TestWriteErrorIsReturned(t *testing.T) {
	c := accesslogtest.Config{Lines: 3000}
	log, _ := write(t, c)
	for _, size := range []int{0, 1, 70_000, len(log) - 1} {
		if _, err := accesslogtest.Write(&fullDisk{size}, c); !errors.Is(err, errFull) {
			t.Errorf("a writer that takes %d of %d bytes: error %v, want %v", size, len(log), err, errFull)
		}
	}
	if _, err := accesslogtest.Write(&fullDisk{len(log)}, c); err != nil {
		t.Error(err)
	}
}

func BenchmarkWrite(b *testing.B) {
	for b.Loop() {
		must.Get(accesslogtest.Write(io.Discard, accesslogtest.Config{}))(b)
	}
}
