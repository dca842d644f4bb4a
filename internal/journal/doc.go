// Package journal keeps the state of a server in plain files of one directory:
// a snapshot now and then, and in between a journal of what must not be lost. It
// knows nothing of limits, counts or bans; records are bytes.
//
//	dir, found, err := journal.Open(path, journal.Restore{Snapshot: restore, Journal: replay})
//	...
//	pending, err := dir.Journal().Append(record) // in the order of changes
//	err = pending.Wait()                         // on disk
//	...
//	err = dir.WriteSnapshot(dump)
//
// # What is promised
//
// A record whose Wait returned nil survives the end of the process at
// any moment, and the end of power on a disk that honours fsync. The state that is
// read is what was written, up to some moment after the last acknowledged
// record. If the disk has changed a record, the records behind it are read all the
// same, and the error says which ones are lost; a snapshot that is damaged is
// noticed before any of it is used. An error of fsync is never taken back by a
// second fsync: the file is left, and the records go to a new one.
//
// # The one rule for callers
//
// First change the state, then append the record of the change; and where order
// matters, do both under one lock, and wait for the disk after it:
//
//	mu.Lock()
//	apply(change)
//	pending, err := j.Append(encode(change))
//	mu.Unlock()
//	...
//	err = pending.Wait()
//
// A snapshot then has all changes whose records came before it began, and these
// records are not read again. Changes made while it is written may be both in it
// and in the journal, so applying a record twice must do no harm.
//
// While the disk fails, records wait in memory. Those that do not fit are
// counted as missing, and the state that they tell of is in the next snapshot: write
// one when [Journal.Notify] says that the disk is well again.
//
// # Files
//
// All numbers are little-endian, and all checksums CRC-32C. Both kinds of file
// begin with the same 16 bytes, which no later version will change: 8 of a name,
// 4 of a version, 4 of the checksum of these.
//
// snapshot-00000007 is the seventh generation. After the 16 bytes come the
// generation (8), when it was written (8, Unix nanoseconds), the number of the
// last journal record that it covers (8), a checksum; then blocks: length of the
// payload (4, not 0), records in it (4), payload, checksum; then a footer: 0 (4), blocks
// (8), records (8), bytes of payload (8), checksum of the blocks' checksums (4),
// checksum. A record in a payload is its type (1), its length (varint), its
// bytes. Checksums after the header begin with the generation, those of blocks
// also with the place of the block, so that no block passes for another.
//
// A snapshot is written as snapshot.tmp, synced, renamed, and the directory is
// synced. Two generations are kept, and all journals that the older one needs.
//
// journal-00000003 has, after the 16 bytes, the number of its first record (8),
// when it was begun (8), a checksum; then records: length (4), number (8),
// checksum of all but itself (4), bytes. Numbers go up by one. Files are only
// appended to, by the process that made them: a process that finds a torn tail
// leaves it and begins a file of its own. Behind bytes that are no record, reading
// goes on with the next whole one that has a higher number. A damaged file is
// kept as journal-00000003.bad when it is no longer needed, as is a snapshot that
// is damaged; of each kind the newest three, after a snapshot is written.
//
// lock is empty but for the number of the process that has it, and is never
// removed. The directory itself is locked as well, where that is possible, so that
// removing the file lets no second process in. Other files are left alone.
//
// The ideas are old: group commit is that of IMS/VS Fast Path (Gawlick, Kinkade
// 1985), the checksummed log with a torn tail that of LevelDB and SQLite, the way
// fsync errors are met follows from Rebello et al., "Can Applications Recover
// from fsync Failures?" (USENIX ATC 2020).
package journal
