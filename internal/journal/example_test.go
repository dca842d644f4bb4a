package journal_test

import (
	"fmt"
	"log"
	"os"
	"path/filepath"

	"github.com/lately-go/lately/internal/journal"
)

// A process has a state, three words. It writes two of them to a snapshot, and
// then a third one to the journal. The next process has all three.
func Example() {
	tmp, err := os.MkdirTemp("", "journal")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(tmp)
	path := filepath.Join(tmp, "state")

	const word = 1 // a type of record
	first, err := journal.Open(path)
	if err != nil {
		log.Fatal(err)
	}
	err = first.WriteSnapshot(func(w *journal.SnapshotWriter) error {
		if err := w.Add(word, []byte("how")); err != nil {
			return err
		}
		return w.Add(word, []byte("many"))
	})
	if err != nil {
		log.Fatal(err)
	}
	if err := first.Journal().Append([]byte("lately")); err != nil {
		log.Fatal(err)
	}
	if err := first.Close(); err != nil {
		log.Fatal(err)
	}

	second, err := journal.Open(path)
	if err != nil {
		log.Fatal(err)
	}
	defer second.Close()
	info, err := second.ReadSnapshot(func(r journal.Record) error {
		fmt.Printf("snapshot: %s\n", r.Data)
		return nil
	})
	if err != nil {
		log.Fatal(err)
	}
	found, err := second.ReadJournal(func(record []byte) error {
		fmt.Printf("journal: %s\n", record)
		return nil
	})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("generation", info.Generation, "with", info.Records, "records, and", found.Records, "since")
	// Output:
	// snapshot: how
	// snapshot: many
	// journal: lately
	// generation 1 with 2 records, and 1 since
}
