package randtest

import "testing"

func TestSeed(t *testing.T) {
	t.Setenv(seedVariable, "")
	if a, b := Seed(t), Seed(t); a == b {
		t.Errorf("two seeds are %d", a)
	}
	t.Setenv(seedVariable, "18446744073709551615")
	var seeds [2][3]uint64
	for i := range seeds {
		t.Run("again", func(t *testing.T) {
			seeds[i] = [3]uint64{Seed(t), Seed(t), Seed(t)}
		})
	}
	if s := seeds[0]; s[0] != 1<<64-1 || s[0] == s[1] || s[1] == s[2] || s != seeds[1] {
		t.Errorf("the seeds of two runs with %s are %v", seedVariable, seeds)
	}
}
