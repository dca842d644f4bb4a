// Package geotest writes small files in the mmdb format, for tests.
package geotest

import (
	"encoding/binary"
	"fmt"
	"maps"
	"net/netip"
	"slices"
)

// A node has the numbers of two nodes, or the places of two records, or absent.
type node [2]int

const absent = -1

// File returns a file with these records, by their networks, which must not overlap. A value of a record is a string, an
// uint32 or a map.
func File(records map[string]map[string]any) []byte {
	nodes, leaves := []node{{absent, absent}}, map[[2]int]int{} // records by node and side
	var data []byte
	for _, text := range slices.Sorted(maps.Keys(records)) {
		network := netip.MustParsePrefix(text)
		bits, ip := network.Bits(), network.Addr().As16()
		if network.Addr().Is4() {
			bits += 96
			clear(ip[:12]) // IPv4 is at ::/96
		}
		at := 0
		for i := range bits {
			side := int(ip[i/8] >> (7 - i%8) & 1)
			if i == bits-1 {
				leaves[[2]int{at, side}] = len(data)
				break
			}
			if nodes[at][side] == absent {
				nodes[at][side] = len(nodes)
				nodes = append(nodes, node{absent, absent})
			}
			at = nodes[at][side]
		}
		data = value(data, records[text])
	}
	const separator = 16
	var out []byte
	for at, n := range nodes {
		for side, next := range n {
			if place, ok := leaves[[2]int{at, side}]; ok {
				next = len(nodes) + separator + place
			} else if next == absent {
				next = len(nodes)
			}
			out = append(out, byte(next>>16), byte(next>>8), byte(next))
		}
	}
	out = append(append(out, make([]byte, separator)...), data...)
	return value(append(out, "\xab\xcd\xefMaxMind.com"...), map[string]any{
		"node_count": uint32(len(nodes)), "record_size": uint16(24), "ip_version": uint16(6), "database_type": "Test",
		"binary_format_major_version": uint16(2), "binary_format_minor_version": uint16(0), "build_epoch": uint64(1),
	})
}

// value appends v as the format encodes it.
func value(out []byte, v any) []byte {
	const text, short, long, table, huge = 2, 5, 6, 7, 9
	switch v := v.(type) {
	case string:
		return append(header(out, text, len(v)), v...)
	case uint16:
		return binary.BigEndian.AppendUint16(header(out, short, 2), v)
	case uint32:
		return binary.BigEndian.AppendUint32(header(out, long, 4), v)
	case uint64:
		return binary.BigEndian.AppendUint64(append(out, 8, huge-7), v)
	case map[string]any:
		out = header(out, table, len(v))
		for _, name := range slices.Sorted(maps.Keys(v)) {
			out = value(value(out, name), v[name])
		}
		return out
	}
	panic(fmt.Sprintf("geotest: a value of type %T: must be a string, a number or a map", v))
}

func header(out []byte, kind, size int) []byte {
	const direct = 29
	if size < direct {
		return append(out, byte(kind<<5|size))
	}
	return append(out, byte(kind<<5|direct), byte(size-direct))
}
