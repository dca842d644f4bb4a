package accesslog

import (
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/lately-go/lately/internal/test/must"
	"github.com/lately-go/lately/internal/test/randtest"
)

func TestCLFClock(t *testing.T) {
	for _, tt := range []struct {
		text   string
		result clfResult
		want   string
	}{
		{"17/Apr/2018:06:25:06 +0000", clfValid, "2018-04-17T06:25:06Z"},
		{"17/Apr/2018:06:25:59 +0000", clfValid, "2018-04-17T06:25:59Z"},
		{"17/Apr/2018:06:25:60 +0000", clfInvalid, ""},
		{"17/Apr/2018:06:29:60 +0000", clfValid, "2018-04-17T06:30:00Z"},
		{"31/Dec/2016:23:59:60 +0000", clfValid, "2017-01-01T00:00:00Z"},
		{"31/Dec/2016:23:59:61 +0000", clfInvalid, ""},
		{"17/Apr/2018:06:25:99 +0000", clfInvalid, ""},
		{"17/Apr/2018:06:25:0x +0000", clfOther, ""},
		{"17/Apr/2018:06:25:x0 +0000", clfOther, ""},
		{"17/Apr/2018:06:25:06 +0001", clfValid, "2018-04-17T06:24:06Z"},
		{"17/Apr/2018:06:25:06 -9999", clfValid, "2018-04-21T11:04:06Z"},
		{"17/Apr/2018:06:60:06 +0000", clfInvalid, ""},
		{"17/Apr/2018:24:00:06 +0000", clfInvalid, ""},
		{"31/Apr/2018:06:25:06 +0000", clfInvalid, ""},
		{"29/Feb/2018:06:25:06 +0000", clfInvalid, ""},
		{"29/Feb/2016:06:25:06 +0000", clfValid, "2016-02-29T06:25:06Z"},
		{"00/Jan/2016:06:25:06 +0000", clfInvalid, ""},
		{"01/Jan/0000:06:25:06 +0000", clfInvalid, ""},
		{"01/Jan/0001:00:00:00 +0000", clfValid, "0001-01-01T00:00:00Z"},
		{"31/Dec/9999:23:59:59 +0000", clfValid, "9999-12-31T23:59:59Z"},
		{"17/Xyz/2018:06:25:06 +0000", clfInvalid, ""},
		{"17/apr/2018:06:25:06 +0000", clfOther, ""},
		{"17/Apr/2018:06:25:06  0000", clfOther, ""},
		{"17-Apr-2018:06:25:06 +0000", clfOther, ""},
		{"01/Jan/1970:00:00:07 +0000", clfValid, "1970-01-01T00:00:07Z"},
	} {
		clock := newCLFClock()
		for range 2 { // the second time mostly from memory
			sec, result := clock.read([]byte(tt.text))
			if result != tt.result {
				t.Errorf("%q: result %d, want %d", tt.text, result, tt.result)
			}
			if got := utc(sec, 0).Format(time.RFC3339); result == clfValid && got != tt.want {
				t.Errorf("%q is %s, want %s", tt.text, got, tt.want)
			}
		}
	}
}

// Bytes that an empty cache would take for its own.
func TestCLFClockHasNoEmptyMemory(t *testing.T) {
	clock := newCLFClock()
	zeros := []byte(strings.Repeat("\x00", 18) + "07" + strings.Repeat("\x00", 6))
	if _, result := clock.read(zeros); result != clfOther {
		t.Errorf("result of zeros is %d, want %d", result, clfOther)
	}
}

// The cache of the clock must never show: one clock over many times and a new one for each give the same answers.
func TestCLFClockMemoryDoesNotShow(t *testing.T) {
	seed := randtest.Seed(t)
	rng := rand.New(rand.NewPCG(seed, 0))
	old := newCLFClock()
	text := []byte("17/Apr/2018:06:25:06 +0000")
	for range 50_000 {
		i := rng.IntN(len(text))
		if isDigit(text[i]) {
			text[i] = '0' + byte(rng.IntN(10))
		} else if rng.IntN(8) == 0 {
			text[i] ^= 1
		}
		fresh := newCLFClock()
		want, wantResult := fresh.read(text)
		if got, result := old.read(text); got != want || result != wantResult {
			t.Fatalf("%q: %d, %d with memory, %d, %d without", text, got, result, want, wantResult)
		}
		if wantResult != clfValid && rng.IntN(3) == 0 {
			text = []byte("17/Apr/2018:06:25:06 +0000")
		}
	}
}

func TestReadISO(t *testing.T) {
	for _, tt := range []struct {
		text string
		ok   bool
	}{
		{"2018-03-24T17:15:20Z", true},
		{"2018-03-24T17:15:20.865716Z", true},
		{"2018-03-24T17:15:20.8657161239Z", true},
		{"2018-03-24T17:15:20.Z", false},
		{"2018-03-24T17:15:20", false},
		{"2018-03-24T17:15:20+00:00", true},
		{"2018-03-24T17:15:20.5-23:59", true},
		{"2018-03-24T17:15:20.5-24:00", false},
		{"2018-03-24T17:15:20.5+01:60", false},
		{"2018-03-24T17:15:20+0100", false},
		{"2018-03-24t17:15:20z", true},
		{"2018-03-24 17:15:20Z", true},
		{"2018-03-24T17:15:60Z", false},
		{"2016-12-31T23:59:61Z", false},
		{"2018-02-29T17:15:20Z", false},
		{"0000-01-01T00:00:00Z", false},
		{"0001-01-01T00:00:00Z", true},
		{"9999-12-31T23:59:59Z", true},
		{"2018-03-24T17:15:20ZZ", false},
		{"2018-3-24T17:15:20Z", false},
		{"2018-03-24T17:15:2xZ", false},
		{"", false},
	} {
		sec, nsec, ok := readISO([]byte(tt.text))
		if ok != tt.ok {
			t.Errorf("readISO(%q): ok = %v, want %v", tt.text, ok, tt.ok)
		}
		if !ok {
			continue
		}
		want := must.Get(time.Parse(time.RFC3339Nano, strings.Replace(strings.ToUpper(tt.text), " ", "T", 1)))(t)
		if got := utc(sec, nsec); !got.Equal(want) {
			t.Errorf("readISO(%q) = %v, want %v", tt.text, got, want)
		}
	}
}
