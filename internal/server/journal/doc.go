// Package journal keeps the state of a server in plain files of one directory: periodic
// snapshots, and a journal of the changes since that must not be lost. Records are bytes.
//
//	dir, found, err := journal.Open(path, journal.Restore{Snapshot: restore, Journal: replay})
//	...
//	pending, err := dir.Journal().Append(record) // in the order of changes
//	err = pending.Wait()                         // on disk
//	...
//	err = dir.WriteSnapshot(dump)
//
// # Guarantees
//
// A record whose Wait returned nil survives a crash of the process, and a power failure if
// the disk honours fsync. The state that is read is the state that was written, up to some
// moment after the last acknowledged record. If the disk has changed a record, the records
// after it are still read, and the lost ones are reported; a damaged snapshot is detected
// before any of it is used. After an error of fsync the file is not written to again, as a
// second fsync may succeed without the data: the records go to a new file.
//
// # The rule for callers
//
// First change the state, then append the record of the change. If order matters, do both
// under one lock, and wait for the disk without it. A snapshot then has all changes whose
// records were appended before it began, and these records are not read again. Changes
// made meanwhile may be in it and in the journal, so records must be idempotent.
//
// While the disk fails, records wait in memory. Those that do not fit are counted as
// missing, but the next snapshot has their changes: write one when [Journal.Notify] reports
// that the disk works again.
//
// # Files
//
// Numbers are little-endian, and checksums are CRC-32C. Every file begins with the same 16
// bytes in all versions: a name (8), the version (4), the checksum of both (4).
//
// snapshot-00000007 is the seventh generation. The generation (8), the time of writing (8,
// Unix nanoseconds), the number of the last journal record that it covers (8) and a
// checksum follow; then blocks: length of the payload (4, not 0), number of records (4),
// payload, checksum; then a footer: 0 (4), blocks (8), records (8), bytes of payload (8),
// checksum of the blocks' checksums (4), checksum. A record in a payload is its type (1),
// its length (varint) and its bytes. Checksums after the header begin with the generation,
// and those of blocks also with the index of the block, so that no block passes for
// another. A snapshot is written as snapshot.tmp, synced, renamed, and the directory is
// synced. Two generations are kept, with all journals that the older one needs.
//
// In journal-00000003 the number of its first record (8), the time when it was begun (8)
// and a checksum follow; then records: length (4), number (8), checksum of all but itself
// (4), bytes. Numbers go up by one. Only the process that made a file appends to it: the
// next one leaves a torn tail and begins a file of its own. After damaged bytes, reading
// continues with the next whole record that has a higher number. A damaged file that is no
// longer needed is kept as journal-00000003.bad, like a damaged snapshot; when a snapshot
// is written, all but the newest three of each kind are removed.
//
// lock has the number of the process that holds it, and is never removed. Where possible,
// the directory itself is locked as well: removing the file does not let a second process
// in. Other files are left alone.
//
// Sources: group commit is that of IMS/VS Fast Path (Gawlick, Kinkade 1985), the
// checksummed log with a torn tail that of LevelDB and SQLite. For errors of fsync see
// Rebello et al., "Can Applications Recover from fsync Failures?" (USENIX ATC 2020).
package journal
