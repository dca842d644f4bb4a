package accesslog

import (
	"fmt"
	"math/big"
	"math/rand/v2"
	"regexp"
	"strings"
	"testing"

	"github.com/lately-go/lately/internal/test/randtest"
)

var decimalForm = regexp.MustCompile(`^-?[0-9]+(\.[0-9]+)?([eE][-+]?[0-9]+)?$`)

// slowDecimal computes with fractions of any size.
func slowDecimal(s string, power int) (sec, nsec int64, ok bool) {
	if !decimalForm.MatchString(s) {
		return 0, 0, false
	}
	if at := strings.IndexAny(s, "eE"); at >= 0 {
		exponent, _ := new(big.Int).SetString(s[at+1:], 10)
		if limit := big.NewInt(20_000); exponent.CmpAbs(limit) > 0 { // more than any digits below make up for
			s = fmt.Sprint(s[:at], "e", exponent.Sign()*20_000)
		}
	}
	r, _ := new(big.Rat).SetString(s)
	scale := new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(9-power)), nil)
	r.Mul(r, new(big.Rat).SetInt(scale))
	nanos := new(big.Int).Div(r.Num(), r.Denom()) // Euclidean: rounded down, as the divisor is positive
	rest := new(big.Int)
	second, _ := new(big.Int).DivMod(nanos, big.NewInt(1_000_000_000), rest)
	if !second.IsInt64() || second.Int64() < minSeconds || second.Int64() > maxSeconds {
		return 0, 0, false
	}
	return second.Int64(), rest.Int64(), true
}

func checkDecimal(t *testing.T, s string, power int) {
	t.Helper()
	sec, nsec, ok := readDecimal([]byte(s), power)
	wantSec, wantNsec, wantOK := slowDecimal(s, power)
	if ok != wantOK || ok && (sec != wantSec || nsec != wantNsec) {
		t.Fatalf("readDecimal(%q, %d) = %d, %d, %v, want %d, %d, %v", s, power, sec, nsec, ok, wantSec, wantNsec, wantOK)
	}
}

func TestReadDecimal(t *testing.T) {
	for _, s := range []string{
		"0", "-0", "00", "0.0", "1", "-1", "1521911720.865716", "-0.0000000001", "-0.0000000010", "0.9999999999",
		"-1.5", "1e3", "1E+3", "15e-1", "-15e-10", "1.5e9", "0e999999999999", "1e-999999999999", "-1e-999999999999",
		"1e999999999999", "253402300799", "253402300800", "253402300799.999999999", "253402300799.9999999999",
		"-62135596800", "-62135596800.0000000001", "-62135596801", "000000000000000000000000001",
		"999999999999999999", "9999999999999999999", "253402300799999999999", "253402300800000000000",
		"0.00000000000000000001e20", strings.Repeat("0", 5000) + "7." + strings.Repeat("0", 5000) + "1",
		"", "-", "+1", ".5", "5.", "1e", "1e+", "e5", "1 ", " 1", "0x10", "1_0", "1.5.5", "NaN", "Infinity", "1/2", "1e5.5",
	} {
		for power := 0; power <= 9; power += 3 {
			checkDecimal(t, s, power)
		}
	}
}

func TestReadDecimalAgreesWithBigRat(t *testing.T) {
	seed := randtest.Seed(t)
	rng := rand.New(rand.NewPCG(seed, 0))
	for range 50_000 {
		s := fmt.Sprint(rng.Int64() >> rng.IntN(64))
		if rng.IntN(2) == 0 {
			s = "-" + s
		}
		if rng.IntN(2) == 0 {
			s += "." + fmt.Sprint(rng.Uint64()>>rng.IntN(64))
		}
		if rng.IntN(2) == 0 {
			s += fmt.Sprintf("e%d", rng.IntN(41)-20)
		}
		checkDecimal(t, s, 3*rng.IntN(4))
	}
}

func FuzzDecimal(f *testing.F) {
	f.Add("1521911720.865716", uint8(0))
	f.Add("-15e-10", uint8(1))
	f.Fuzz(func(t *testing.T, s string, power uint8) {
		if len(s) > 10_000 {
			return
		}
		checkDecimal(t, s, 3*int(power%4))
	})
}
