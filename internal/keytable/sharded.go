package keytable

import (
	"bytes"
	"hash/maphash"
	"iter"
	"sync"
)

// MaxShardedKey is the longest key a Sharded takes, in bytes.
const MaxShardedKey = 1<<lenBits - 1

// ShardedConfig says how a Sharded is built. The zero ShardedConfig is a table of single-word
// records without logs.
type ShardedConfig struct {
	Words  int   // words a record; 0 means 1
	Logs   []int // the bound of each log that a record has, see Log
	Shards int   // rounded up to a power of two; 0 means 64
}

// A Sharded maps keys to records. Its methods are safe for concurrent use; a
// record is used only between its shard's Lock and Unlock.
//
// A key takes 16 bytes, 8 for each word of its record, its own length, and 11
// to 21 for the index, depending on how full that is; logs come on top. An
// empty shard takes 250 bytes, and one with a key 32 KiB.
type Sharded struct {
	seed   maphash.Seed
	shards []Shard
	shift  uint // 64 - log2(len(shards)): the shard is the hash's top bits
}

// NewSharded returns an empty Sharded that hashes with seed. Tables with one seed agree
// on every key's hash, so that it is computed once.
func NewSharded(seed maphash.Seed, c ShardedConfig) *Sharded {
	n, shift := 1, uint(64)
	for want := cmpOr(c.Shards, 64); n < want; n *= 2 {
		shift--
	}
	t := &Sharded{seed: seed, shards: make([]Shard, n), shift: shift}
	for i := range t.shards {
		t.shards[i].init(cmpOr(c.Words, 1), c.Logs)
	}
	return t
}

func cmpOr(v, otherwise int) int {
	if v <= 0 {
		return otherwise
	}
	return v
}

// Hash returns key's hash, which Shard, Find and FindOrAdd take.
func (t *Sharded) Hash(key []byte) uint64 { return maphash.Bytes(t.seed, key) }

// Shard returns the shard of all keys with that hash.
func (t *Sharded) Shard(hash uint64) *Shard { return &t.shards[hash>>t.shift] }

// Len returns the number of keys.
func (t *Sharded) Len() int {
	n := 0
	for i := range t.shards {
		s := &t.shards[i]
		s.Lock()
		n += s.n
		s.Unlock()
	}
	return n
}

// Bytes returns how much memory records, keys, logs and indexes take.
func (t *Sharded) Bytes() int64 {
	n := int64(0)
	for i := range t.shards {
		s := &t.shards[i]
		s.Lock()
		n += s.bytes + 8*int64(len(s.index))
		for j := range s.logs {
			n += s.logs[j].bytes
		}
		s.Unlock()
	}
	return n
}

// All yields every key with its record, in no order, shard by shard under the
// shard's lock: each pair is consistent, all of them together are not one
// moment's. The loop's body must not use the table, and must copy what it keeps.
func (t *Sharded) All() iter.Seq2[[]byte, []uint64] {
	return func(yield func([]byte, []uint64) bool) {
		for i := range t.shards {
			if !t.shards[i].each(yield) {
				return
			}
		}
	}
}

// A Shard is the part of a Sharded under one lock.
type Shard struct {
	sync.Mutex

	// index is an open-addressing table with linear probing, at most three
	// quarters full. A slot is 0 when empty, else the upper half of the hash
	// over the record's number plus one. Records are never removed, so a
	// probe ends at the first empty slot.
	index []uint64
	n     int // records

	// Record r is words[r>>blockBits], the low bits of r times stride words
	// in: its hash, the place of its key, then the user's words.
	words     [][]uint64
	stride    int
	blockBits uint8 // log2 of the records in a block

	keys [][]byte // blocks of key bytes; a key lies in one block
	logs []Logs

	bytes int64 // of blocks and keys

	_ [64]byte // keeps the next shard's lock off this one's cache lines
}

const (
	headWords = 2 // hash, key place

	// blockWords is how many words a block of records aims at: 16 KiB, so
	// that a small table stays small and a large one makes few blocks.
	blockWords = 2048
	keyBlock   = 16 << 10

	// A key's place is block | offset | length.
	lenBits = 20
	offBits = 22
)

func (s *Shard) init(words int, logs []int) {
	s.stride = words + headWords
	s.blockBits = 3
	for s.stride<<(s.blockBits+1) <= blockWords {
		s.blockBits++
	}
	s.index = make([]uint64, 8)
	s.logs = make([]Logs, len(logs))
	for i, bound := range logs {
		s.logs[i].init(bound)
	}
}

// Logs returns the storage of the i-th log of the shard's records.
func (s *Shard) Logs(i int) *Logs { return &s.logs[i] }

// Find returns the record of key, or nil when it has none.
func (s *Shard) Find(hash uint64, key []byte) []uint64 {
	mask := uint64(len(s.index) - 1)
	for i := hash & mask; s.index[i] != 0; i = (i + 1) & mask {
		if s.index[i]>>32 == hash>>32 {
			if rec := s.record(uint32(s.index[i]) - 1); rec[0] == hash && bytes.Equal(s.key(rec[1]), key) {
				return rec[headWords:]
			}
		}
	}
	return nil
}

// FindOrAdd returns the record of key, adding one of zero words when it has
// none. The key, at most MaxShardedKey bytes, is copied.
func (s *Shard) FindOrAdd(hash uint64, key []byte) []uint64 {
	if rec := s.Find(hash, key); rec != nil {
		return rec
	}
	if (s.n+1)*4 > len(s.index)*3 {
		s.grow()
	}
	r := uint32(s.n)
	if r&(1<<s.blockBits-1) == 0 {
		s.words = append(s.words, make([]uint64, s.stride<<s.blockBits))
		s.bytes += 8 * int64(s.stride<<s.blockBits)
	}
	s.n++
	s.link(hash, r)
	rec := s.record(r)
	rec[0], rec[1] = hash, s.keep(key)
	return rec[headWords:]
}

func (s *Shard) record(r uint32) []uint64 {
	at := int(r&(1<<s.blockBits-1)) * s.stride
	return s.words[r>>s.blockBits][at : at+s.stride : at+s.stride]
}

func (s *Shard) key(place uint64) []byte {
	n := int(place & (1<<lenBits - 1))
	off := int(place >> lenBits & (1<<offBits - 1))
	return s.keys[place>>(lenBits+offBits)][off : off+n]
}

// keep copies key into the last block, or a new one, and returns its place.
func (s *Shard) keep(key []byte) uint64 {
	if len(key) > MaxShardedKey {
		panic("shard: key of more than MaxShardedKey bytes")
	}
	last := len(s.keys) - 1
	if last < 0 || cap(s.keys[last])-len(s.keys[last]) < len(key) {
		s.keys = append(s.keys, make([]byte, 0, max(keyBlock, len(key))))
		s.bytes += int64(max(keyBlock, len(key)))
		last++
	}
	off := len(s.keys[last])
	s.keys[last] = append(s.keys[last], key...)
	return uint64(last)<<(lenBits+offBits) | uint64(off)<<lenBits | uint64(len(key))
}

func (s *Shard) link(hash uint64, r uint32) {
	mask := uint64(len(s.index) - 1)
	i := hash & mask
	for s.index[i] != 0 {
		i = (i + 1) & mask
	}
	s.index[i] = hash>>32<<32 | uint64(r+1)
}

// grow doubles the index. Records stay where they are.
func (s *Shard) grow() {
	s.index = make([]uint64, 2*len(s.index))
	for r := range uint32(s.n) {
		s.link(s.record(r)[0], r)
	}
}

func (s *Shard) each(yield func([]byte, []uint64) bool) bool {
	s.Lock()
	defer s.Unlock()
	for r := range uint32(s.n) {
		rec := s.record(r)
		if !yield(s.key(rec[1]), rec[headWords:]) {
			return false
		}
	}
	return true
}
