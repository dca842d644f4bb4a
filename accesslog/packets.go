package accesslog

import (
	"bytes"

	"github.com/lately-go/lately/match"
)

var (
	reasonBlocked, programKernel = []byte("blocked"), []byte("kernel")

	sourceKey, protocolKey, sourcePortKey, portKey = []byte("SRC="), []byte("PROTO="), []byte("SPT="), []byte("DPT=")
)

// readBlocked reads the packets that a firewall of Linux has dropped and logged, from the
// messages of the kernel:
//
//	[35266.781076] [UFW BLOCK] IN=ens3 OUT= ... SRC=CLIENT ... PROTO=TCP SPT=n DPT=OBJECT ...
//
// The text before IN= is chosen by the rules of iptables or nftables. A packet of a rule whose
// text says ALLOW, ACCEPT or AUDIT was not dropped. Client is the source address, object the
// destination port, if the protocol has ports, and the protocol and the source port are the
// fields "proto" and "spt". The kernel writes them in this order, the ports behind the protocol.
func readBlocked(text []byte, ev *match.Event) bool {
	start := bytes.Index(text, []byte("IN="))
	if start < 0 || isAllowed(text[:start]) {
		return false
	}
	text, _, _ = bytes.Cut(text[start:], []byte{'['}) // a packet in a message of ICMP
	client, text := cutWord(text, sourceKey)
	protocol, text := cutWord(text, protocolKey)
	if !isAddress(client) || len(protocol) == 0 {
		return false
	}
	ev.Set(match.Client, client)
	ev.SetNamed("proto", protocol)
	if bytes.HasPrefix(text, sourcePortKey) {
		var source, port []byte
		source, text = cutWord(text, sourcePortKey)
		ev.SetNamed("spt", source)
		if port, _ = cutWord(text, portKey); allDigits(port) {
			ev.Set(match.Object, port)
		}
	}
	ev.SetNamed("reason", reasonBlocked)
	ev.SetNamed("program", programKernel)
	return true
}

// cutWord returns the value of the first word of a text that begins with key, and the text behind
// it.
func cutWord(text, key []byte) (value, rest []byte) {
	for at := 0; ; at += len(key) {
		i := bytes.Index(text[at:], key)
		if i < 0 {
			return nil, text
		}
		if at += i; at == 0 || text[at-1] == ' ' { // not MACSRC=
			value, rest, _ = bytes.Cut(text[at+len(key):], []byte{' '})
			return value, rest
		}
	}
}

// isAllowed reports whether the text of a rule says that it let a packet pass.
func isAllowed(text []byte) bool {
	if bytes.IndexByte(text, 'A') < 0 { // most
		return false
	}
	return bytes.Contains(text, []byte("ALLOW")) || bytes.Contains(text, []byte("ACCEPT")) || bytes.Contains(text, []byte("AUDIT"))
}
