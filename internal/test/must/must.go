// Package must ends tests whose preparations fail:
//
//	text := must.Get(os.ReadFile(path))(t)
//	must.Do(t, os.Remove(path))
package must

import "testing"

// Do ends the test with err, unless it is nil.
func Do(t testing.TB, err error) {
	if err != nil {
		t.Helper()
		t.Fatal(err)
	}
}

// Get returns a function that returns v, and ends the test with err unless that is nil.
func Get[T any](v T, err error) func(t testing.TB) T {
	return func(t testing.TB) T {
		if err != nil {
			t.Helper()
			t.Fatal(err)
		}
		return v
	}
}
