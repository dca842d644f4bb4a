package limit

import (
	"github.com/lately-go/lately/internal/counting/keytable"
	"github.com/lately-go/lately/internal/counting/snapshot"
)

// nothing is the window of N = 0, which has no words.
type nothing struct{}

func (nothing) words() int                                                       { return 0 }
func (nothing) advance([]uint64, *keytable.Blocks, int64) uint64                 { return 0 }
func (nothing) used([]uint64, *keytable.Blocks, int64) uint64                    { return 0 }
func (nothing) charge([]uint64, *keytable.Blocks, int64, uint64)                 {}
func (nothing) refund([]uint64, *keytable.Blocks, int64, int64, uint64) uint64   { return 0 }
func (nothing) refundOldest([]uint64, *keytable.Blocks, int64, uint64) uint64    { return 0 }
func (nothing) until(_ []uint64, _ *keytable.Blocks, t int64, _, _ uint64) int64 { return t }
func (nothing) each([]uint64, *keytable.Blocks, int64, func(int64, uint64) bool) {}
func (nothing) appendState(dst []byte, _ []uint64, _ *keytable.Blocks, _ int64) []byte {
	return append(dst, 0)
}

func (nothing) readState(r *snapshot.Reader, _ []uint64, _ *keytable.Blocks, _, _ int64) {
	r.UpTo(0)
}
