// Package keytable is the keyed tables of this module: from a key's bytes to a
// record of a few words, found by a seeded hash, so that nobody outside can
// build keys that collide. Records and keys lie in large blocks without
// pointers, which the garbage collector does not look into. There are two forms.
//
// [Table] is under lately.Table and the memory store of ratelimit: hash, record
// and, if wanted, a short key lie side by side in pages that grow by a quarter,
// and each record has a lock of its own, so that a hit meets one or two cache
// lines and writes to one. A key is known by 60 bits or more of its hash, and
// where a decision hangs on it by 128, or compared in full. What a page holds
// moves as it grows. A [Budget] bounds the bytes of all that belongs to one or
// several tables, and what it cannot hold is forgotten, or refused; a [Slab] keeps
// the few records that outgrow their place.
//
// [Table] is under the detector of hotkey. It is cut into shards, each with its
// own lock, index and storage. Keys are compared in full, so two keys never share
// a record. Records never move: one stays valid while its shard is locked, and
// afterwards. [Log] keeps a bounded log of times in two words of a record, with
// the times in the shard's own storage. A Table only grows.
//
// A record is a slice of words whose meaning is its user's; [Stamp] keeps a time
// in one.
package keytable
