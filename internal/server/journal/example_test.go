package journal_test

import (
	"fmt"
	"log"
	"os"
	"path/filepath"

	"github.com/lately-go/lately/internal/server/journal"
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
	restore := journal.Restore{
		Snapshot: func(r journal.Record) error {
			fmt.Printf("snapshot: %s\n", r.Data)
			return nil
		},
		Journal: func(record []byte) error {
			fmt.Printf("journal: %s\n", record)
			return nil
		},
	}
	first, _, err := journal.Open(path, restore)
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
	pending, err := first.Journal().Append([]byte("lately"))
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
	fmt.Println("generation", found.Snapshot.Generation, "with", found.Snapshot.Records, "records, and", found.Journal.Records, "since")
	// Output:
	// snapshot: how
	// snapshot: many
	// journal: lately
	// generation 1 with 2 records, and 1 since
}
