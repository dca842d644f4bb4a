// Package journal keeps the state of a server in one file: a snapshot, and behind it the
// changes since that must not be lost. Records are bytes with a type.
//
//	j, found, err := journal.Open(path, restore)
//	...
//	pending, err := j.Append(typ, data) // in the order of changes
//	err = pending.Wait()                // on disk
//	...
//	err = j.WriteSnapshot(fill)
//
// # Guarantees
//
// A record whose Wait returned nil survives a crash of the process, and a power failure if
// the disk honours fsync. The state that is read is the state that was written, up to some
// moment after the last acknowledged record. If the disk has changed a record, that record is
// lost and reported, and all others are read.
//
// # The rule for callers
//
// First change the state, then append the record of the change. If order matters, do both
// under one lock, and wait for the disk without it. A snapshot then has all changes whose
// records were appended before it began, and these records are not read again. Changes
// made meanwhile may be in it and in records behind it, so records must be idempotent. A record
// must mean the same if any other record of the snapshot is lost.
//
// While the disk fails, records wait in memory. Those that do not fit are counted as
// missing, but the next snapshot has their changes: write one when [Journal.Notify] reports
// that the disk works again.
//
// # Files
//
// The file is named state. Numbers in it are little-endian, and checksums are CRC-32C. The
// first 16 bytes are the same in all versions: a name (8), the version (4), the checksum of
// both (4). The rest of the header is the time of the snapshot (8, Unix nanoseconds, or 0), its
// number of records (8), the number of the first record (8) and a checksum (4). Records follow:
// length of type and data (4), number (8), checksum of both and of what follows (4), type (1),
// data. Numbers go up by one, from a random one: so bytes within a record that look like a
// record are not taken for one. After damaged bytes, reading continues with the next whole
// record that has a higher number.
//
// A snapshot is written to state.tmp while records are appended to state. Records that came
// meanwhile are copied, state.tmp is synced and renamed to state, and the directory is
// synced. After an error of fsync, records are written again at their place, since a second
// fsync may succeed without the data. The next process removes a torn tail before it appends.
//
// lock has the number of the process that holds it, and is never removed. Where possible,
// the directory itself is locked as well: removing the file does not let a second process
// in. Other files are left alone.
//
// Sources: group commit is that of IMS/VS Fast Path (Gawlick, Kinkade 1985), the
// checksummed log with a torn tail that of LevelDB and SQLite, and the log that is rewritten
// beside the one in use that of Redis. For errors of fsync see Rebello et al., "Can
// Applications Recover from fsync Failures?" (USENIX ATC 2020).
package journal
