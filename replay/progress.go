package replay

import "sync/atomic"

// Progress is how far a run is. Its fields are read while the run goes on.
type Progress struct {
	Total atomic.Int64 // bytes of all files, as stored; 0 when not known
	Read  atomic.Int64 // bytes read of them
	Lines atomic.Int64 // lines parsed

	// Judging is the number of rules to judge once all is read, and Judged
	// how many are done.
	Judging, Judged atomic.Int64
}
