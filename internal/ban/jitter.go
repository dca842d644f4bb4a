package ban

import (
	"encoding/binary"
	"math"
	"math/bits"
	"time"
)

// jittered returns Duration(earlier) and what Jitter adds to it for the key.
func (p *Policy) jittered(earlier, seed uint64, key []byte) time.Duration {
	d := p.Duration(int(min(earlier, math.MaxInt32)))
	if p.Jitter == 0 {
		return d
	}
	part := float64(scatter(seed, earlier, key)>>11) / (1 << 53)
	return d + time.Duration(float64(d)*p.Jitter*part).Truncate(time.Millisecond)
}

// scatter returns 64 bits that depend on a seed, a number and a key. Unlike those of
// hash/maphash they are the same in every process. It folds products of 128 bits, an idea
// of wyhash (Wang Yi, github.com/wangyi-fudan/wyhash).
func scatter(seed, number uint64, key []byte) uint64 {
	const (
		a = 0x9e3779b97f4a7c15 // 2^64 over the golden ratio
		b = 0xd6e8feb86659fd93 // odd, half of its bits set
	)
	h := fold128(seed^a, number^b)
	n := uint64(len(key))
	for ; len(key) >= 8; key = key[8:] {
		h = fold128(h^binary.LittleEndian.Uint64(key), a)
	}
	var tail [8]byte
	copy(tail[:], key)
	h = fold128(h^binary.LittleEndian.Uint64(tail[:]), b)
	return fold128(h^n, a)
}

func fold128(x, y uint64) uint64 {
	hi, lo := bits.Mul64(x, y)
	return hi ^ lo
}
