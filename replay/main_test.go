package replay_test

import (
	"bytes"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"github.com/klauspost/compress/gzip"
	"go.uber.org/goleak"

	"github.com/lately-go/lately/internal/test/must"
	"github.com/lately-go/lately/rules"
)

// TestMain fails when a test leaves a goroutine behind.
func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// pick returns one of choices.
func pick[T any](rnd *rand.Rand, choices ...T) T { return choices[rnd.IntN(len(choices))] }

// writeFile writes a file into a folder of the test and returns its path.
func writeFile(t testing.TB, name string, data []byte) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	must.Do(t, os.WriteFile(path, data, 0o600))
	return path
}

// gzipped returns data as one gzip member.
func gzipped(t testing.TB, data []byte) []byte {
	t.Helper()
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	must.Get(w.Write(data))(t)
	must.Do(t, w.Close())
	return b.Bytes()
}

func mustRules(t testing.TB, text string) *rules.File {
	t.Helper()
	file, err := rules.Parse("rules.yaml", []byte(text))
	if err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	return file
}
