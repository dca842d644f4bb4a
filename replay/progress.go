package replay

import "sync/atomic"

// Progress is the progress of a Run, to be read while it runs.
type Progress struct {
	Total atomic.Int64 // bytes of all files, as stored; 0 if unknown
	Read  atomic.Int64 // bytes read of them
	Lines atomic.Int64 // lines parsed

	// File is the number of the file that is read, from 1 to Files.
	File  atomic.Int64
	Files int

	// Judging is the number of parts to judge after reading, and Judged how many are
	// done.
	Judging, Judged atomic.Int64
}
