// Package shard is the keyed tables of this module: from a key's bytes to a
// record of a few words, found by a seeded hash, so that nobody outside can
// build keys that collide. Records and keys lie in large blocks without
// pointers, which the garbage collector does not look into. There are two forms.
//
// [Table] is for decisions: the memory store of ratelimit and the detector of
// hotkey. It is cut into shards, each with its own lock, index and storage. Keys
// are compared in full, so two keys never share a record. Records never move: one
// stays valid while its shard is locked, and afterwards. [Log] keeps a bounded
// log of times in two words of a record, with the times in the shard's own
// storage. A Table only grows.
//
// [Inline] is for counting, under lately.Table: hash and record lie side by side
// in pages that grow by a quarter, each under its own lock, so that an add meets
// one or two cache lines. A key is known by 60 bits or more of its hash, unless
// full comparison is asked for. What a page holds moves as it grows. A [Budget]
// bounds the bytes of all that belongs to one table, and what it cannot hold is
// forgotten; a [Slab] keeps the few records that outgrow their place.
//
// A record is a slice of words whose meaning is its user's; [Stamp] keeps a time
// in one.
package shard
