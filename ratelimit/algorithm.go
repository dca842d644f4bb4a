package ratelimit

import (
	"fmt"
	"strings"
)

// An Algorithm is how a limit counts. The zero Algorithm is Sliding.
type Algorithm uint8

const (
	// Sliding is the default. For a limit of up to 64 it is Exact. Above, it
	// counts in a ring of 60 slots (64 where 60 does not divide the span
	// into whole nanoseconds) and judges on hi, the sum that includes the
	// oldest, partly expired slot: never more than N in any true window, and
	// every refusal is justified by N admitted in (t-span-slot, t]. A key
	// takes some 300 bytes, whatever N.
	Sliding Algorithm = iota

	// Exact keeps the time of each of the last N events of a key: the
	// definition itself, at 8 bytes an event. N is at most MaxExact.
	Exact

	numAlgorithms
)

const (
	// MaxExact is the largest N that Exact, and a ban, can count: a key then
	// takes up to 8 MiB.
	MaxExact = 1 << 20

	// MaxSliding is the largest N that Sliding can count.
	MaxSliding = 1<<32 - 1

	// slidingExact is the N up to which Sliding is Exact: the log is then
	// no larger than the ring.
	slidingExact = 64
)

var algorithmNames = [numAlgorithms]string{"sliding", "exact"}

// Algorithms returns the names of all algorithms.
func Algorithms() []string { return algorithmNames[:len(algorithmNames):len(algorithmNames)] }

// String returns the algorithm's name as in a rules file.
func (a Algorithm) String() string {
	if a < numAlgorithms {
		return algorithmNames[a]
	}
	return "algorithm?"
}

// AlgorithmNamed returns the algorithm of that name; "" is Sliding. The error
// says which names there are.
func AlgorithmNamed(name string) (Algorithm, error) {
	if name == "" {
		return Sliding, nil
	}
	for i, n := range algorithmNames {
		if n == name {
			return Algorithm(i), nil
		}
	}
	return 0, fmt.Errorf("algorithm is %q; allowed is %s", name, strings.Join(algorithmNames[:], ", "))
}

// MarshalText returns the algorithm's name.
func (a Algorithm) MarshalText() ([]byte, error) { return []byte(a.String()), nil }

// UnmarshalText is AlgorithmNamed.
func (a *Algorithm) UnmarshalText(text []byte) (err error) {
	*a, err = AlgorithmNamed(string(text))
	return err
}
