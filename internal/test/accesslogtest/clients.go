package accesslogtest

import (
	"fmt"
	"math/rand/v2"
	"net/netip"
	"strconv"
)

// Clients that are not drawn from the crowd of ordinary ones. Their last
// octets are above lastOrdinary.
const (
	floodClient   = "203.0.113.245"
	crawlerClient = "192.0.2.244"
	probeClient   = "198.51.100.251" // speaks TLS to a plain port: the dirty lines
	crowdSize     = 12
)

func crowdClients() []string {
	var all []string
	for i := range crowdSize {
		all = append(all, "198.51.100."+strconv.Itoa(238+i))
	}
	return all
}

// The pools of ordinary addresses.
const (
	lastOrdinary = 237              // last octet used in the three small ranges
	docPool      = 3 * lastOrdinary // 192.0.2.0/24, 198.51.100.0/24, 203.0.113.0/24
	benchPool    = 1 << 17          // 198.18.0.0/15
)

// addresses returns n distinct client addresses, most popular first. One in
// four is IPv6, each in its own /64; the others are IPv4 as long as there are
// any, the small documentation ranges first.
func addresses(n int, rng *rand.Rand) []string {
	doc := rng.Perm(docPool)
	mix := rng.Uint32()
	all := make([]string, n)
	v4 := 0
	for i := range all {
		if i%4 == 3 || v4 >= docPool+benchPool {
			all[i] = address6(uint32(i)^mix, rng)
			continue
		}
		if v4 < docPool {
			all[i] = docAddress(doc[v4])
		} else {
			all[i] = benchAddress(uint32(v4-docPool), mix)
		}
		v4++
	}
	return all
}

func docAddress(i int) string {
	nets := [3]string{"192.0.2.", "198.51.100.", "203.0.113."}
	return nets[i/lastOrdinary] + strconv.Itoa(i%lastOrdinary+1)
}

// benchAddress maps 0..2^17-1 onto 198.18.0.0/15 one to one: an odd factor is
// invertible modulo a power of two.
func benchAddress(i, mix uint32) string {
	i = (i*40503 + mix) % benchPool
	return fmt.Sprintf("198.%d.%d.%d", 18+i>>16, i>>8&255, i&255)
}

// address6 is an address in the /64 that is numbered by a permutation of i.
func address6(i uint32, rng *rand.Rand) string {
	i *= 2654435761 // odd: a permutation of all 32-bit numbers
	a := [16]byte{0: 0x20, 1: 0x01, 2: 0x0d, 3: 0xb8}
	a[4], a[5], a[6], a[7] = byte(i>>24), byte(i>>16), byte(i>>8), byte(i)
	host := rng.Uint64()
	for k := range 8 {
		a[8+k] = byte(host >> (8 * k))
	}
	return netip.AddrFrom16(a).String()
}
