package httpapi

import (
	"time"

	"github.com/lately-go/lately/api"
)

// A Storage is the state of writing to the data directory.
type Storage struct {
	Journal   Writes
	Snapshots Writes
	Missing   uint64 // bans that are neither in the journal nor in a snapshot
}

// Writes is the state of writing one kind of file.
type Writes struct {
	Failures uint64    // attempts that failed so far
	Failing  error     // of the last attempt; nil if it succeeded
	Since    time.Time // of the first failure since the last success
}

// storage returns the state of writing.
func (s *Server) storage() Storage {
	if s.config.Storage == nil {
		return Storage{}
	}
	return s.config.Storage()
}

func (s *Server) storageState() api.StorageStatus {
	x := s.storage()
	return api.StorageStatus{
		JournalError: errorText(x.Journal.Failing), JournalFailures: x.Journal.Failures,
		SnapshotError: errorText(x.Snapshots.Failing), SnapshotFailures: x.Snapshots.Failures, MissingBans: x.Missing,
	}
}
