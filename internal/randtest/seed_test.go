package randtest

import "testing"

func TestSeed(t *testing.T) {
	t.Setenv(seedVariable, "")
	if a, b := Seed(t), Seed(t); a == b {
		t.Errorf("two seeds are %d", a)
	}
	t.Setenv(seedVariable, "18446744073709551615")
	if got := Seed(t); got != 1<<64-1 {
		t.Errorf("the seed is %d, want that of %s", got, seedVariable)
	}
}
