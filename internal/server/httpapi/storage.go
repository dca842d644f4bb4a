package httpapi

import "time"

// A Storage is how writing to the data directory goes.
type Storage struct {
	Journal   Writes
	Snapshots Writes
	Missing   uint64 // bans that are neither in the journal nor in a snapshot
}

// Writes is how writing one kind of file goes.
type Writes struct {
	Failures uint64    // attempts that failed so far
	Failing  error     // of the last attempt; nil if it succeeded
	Since    time.Time // of the first failure since the last success
}

// storageState is a [Storage] for an answer.
type storageState struct {
	JournalError     *string `json:"journal_error" doc:"why the ban journal cannot be written; bans that begin now may not survive a restart"`
	JournalFailures  uint64  `json:"journal_failures" doc:"failed attempts to write the ban journal"`
	SnapshotError    *string `json:"snapshot_error" doc:"why the last snapshot could not be written"`
	SnapshotFailures uint64  `json:"snapshot_failures" doc:"failed attempts to write a snapshot"`
	Missing          uint64  `json:"missing_bans" doc:"changes of bans that are neither in the journal nor in a snapshot"`
}

// storage returns how writing goes.
func (s *Server) storage() Storage {
	if s.config.Storage == nil {
		return Storage{}
	}
	return s.config.Storage()
}

func (s *Server) storageState() storageState {
	x := s.storage()
	return storageState{errorText(x.Journal.Failing), x.Journal.Failures, errorText(x.Snapshots.Failing), x.Snapshots.Failures, x.Missing}
}
