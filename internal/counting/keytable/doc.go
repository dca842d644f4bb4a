// Package keytable is the keyed table of this module: it maps the bytes of a key to
// a record of a few words, found by a seeded hash, so that nobody outside can build
// keys that collide. Records and keys lie in memory without pointers, which the
// garbage collector does not look into.
//
// [Table] is the table of window.Table, of the memory store of ratelimit and of the
// detector of hotkey. Hash, record and a short key lie side by side, and each record has
// a lock of its own, so that a hit meets one or two cache lines and writes to one. A key of
// up to [MaxShortKey] bytes is compared in full, a longer one by 128 bits of its hashes.
// A [Budget] bounds the bytes of all that belongs
// to one or several tables; at the budget the table evicts records or refuses keys.
// [Blocks] hold what does not fit in a record: logs of times, or counts. They lie in a
// [Slab].
//
// A record is a slice of words whose meaning is its user's; [Stamp] keeps a time
// in one.
package keytable
