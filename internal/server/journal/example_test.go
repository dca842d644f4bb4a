package journal_test

import (
	"fmt"
	"log"
	"os"
	"path/filepath"

	"github.com/lately-go/lately/internal/server/journal"
)

// A process has a state of three words. It writes two to a snapshot, and appends the third. The next process has all three.
func Example() {
	tmp, err := os.MkdirTemp("", "journal")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(tmp)
	path := filepath.Join(tmp, "state")

	const word = 1 // a type of record
	restore := func(r journal.Record) error {
		fmt.Println(string(r.Data))
		return nil
	}
	first, _, err := journal.Open(path, restore)
	if err != nil {
		log.Fatal(err)
	}
	err = first.WriteSnapshot(func(add func(byte, []byte) error) error {
		if err := add(word, []byte("how")); err != nil {
			return err
		}
		return add(word, []byte("many"))
	})
	if err != nil {
		log.Fatal(err)
	}
	pending, err := first.Append(word, []byte("lately"))
	if err != nil {
		log.Fatal(err)
	}
	if err := pending.Wait(); err != nil {
		log.Fatal(err)
	}
	if err := first.Close(); err != nil {
		log.Fatal(err)
	}

	second, found, err := journal.Open(path, restore)
	if err != nil {
		log.Fatal(err)
	}
	defer second.Close()
	fmt.Println("a snapshot of", found.Snapshot, "records, and", found.Appended, "since")
	// Output:
	// how
	// many
	// lately
	// a snapshot of 2 records, and 1 since
}
