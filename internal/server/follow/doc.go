// Package follow reads logs while programs write them, and passes their events on: files, named pipes, the
// standard input, and the journal of systemd.
//
//	f, err := follow.New(follow.Config{
//		Logs:  []follow.Log{{Path: "/var/log/nginx/access.log"}},
//		Judge: func(ev *match.Event) { ... },
//	})
//	...
//	if err := f.Resume(saved); err != nil { ... } // of the process before this one
//	err = f.Run(ctx)
//
// # Guarantees
//
// Each line of a log is passed on once, although the file is renamed, copied and truncated,
// compressed, replaced through a symbolic link, or deleted and created again, and although
// the process is killed: if its own state and that of [Follower.Save] are kept together,
// a process that resumes from both has counted each line once. If a part of what Save has saved is lost,
// [Follower.Lost] leaves lines out, so that none counts twice.
//
// Three things are lost by their nature: a line that is written between the copy and the
// truncation of a copytruncate and before the next poll; what was not read yet of a file
// that is deleted, or truncated without a copy, while nobody follows it; and what is in
// files that the path has named only while nobody followed it, if their names are not those
// of rotation (see below).
//
// # Files
//
// A file is known by its device, its inode and a hash of its first bytes; one that was
// copied or compressed by the hash alone. So a file that was truncated and has grown again
// is new, and a copy of a file that was read is not read again. A rotated file has the name
// of the log and a number or a date: access.log.1, access.log-20240129.gz,
// access-20240129.log. A file that was rotated is read for another minute,
// since programs write to it until they have opened the new one.
//
// Memory is bounded. At most 32 rotated files per log are open, and a file that must be closed
// before its minute is over is a gap. The files that come after these wait. The places of the last
// 16 finished files are remembered, and those of 128 more that a symbolic link has named and may
// name again; a link that has named more is a problem of the log until some of them are deleted.
//
// Files are polled, ten times a second. If there are more than 64 files, files without a line for a
// minute are polled once a second. Events are passed on by one goroutine, while another one parses
// the next lines.
//
// # Streams
//
// The journal is read through journalctl, whose process is started again when it ends. The cursor of the last entry
// that was passed on is saved, and the entry with it is asked for again: if another one comes, entries are missing,
// which is a gap. Without a saved cursor, reading begins with the entries of the last day.
//
// The standard input and named pipes are read once. What was read of them and is not saved by others
// when the process is killed is lost. A named pipe is read also while no program has it open; one that is
// deleted and made again is read to its end first.
//
// # Times
//
// Events are in the order of the file, or with a lateness in that of time: an event waits
// until an event of the same log is newer by the lateness, or that much time has passed, for old lines of a stream
// since the last one was read. An
// event that is older than one before it by more than that is late: it is counted as late, and
// passed on. While several logs have unread lines, as at the start, their events are passed
// on in the order of time.
package follow
