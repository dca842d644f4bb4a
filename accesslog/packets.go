package accesslog

import (
	"bytes"

	"github.com/lately-go/lately/match"
)

var reasonBlocked, programKernel = []byte("blocked"), []byte("kernel")

// readBlocked reads the packets that a firewall of Linux has dropped and logged, from the
// messages of the kernel:
//
//	[35266.781076] [UFW BLOCK] IN=ens3 OUT= ... SRC=CLIENT ... PROTO=TCP SPT=n DPT=OBJECT ...
//
// The text before IN= is chosen by the rules of iptables or nftables. A packet of a rule whose
// text says ALLOW, ACCEPT or AUDIT was not dropped. Client is the source address, object the
// destination port, if the protocol has ports, and the protocol and the source port are the
// fields "proto" and "spt".
func readBlocked(text []byte, ev *match.Event) bool {
	start := bytes.Index(text, []byte("IN="))
	if start < 0 || isAllowed(text[:start]) {
		return false
	}
	var client, protocol, source, port []byte
	for words := text[start:]; len(words) > 0 && port == nil; {
		word, n := words, bytes.IndexByte(words, ' ')
		if n >= 0 {
			word = words[:n]
		}
		words = words[min(len(word)+1, len(words)):]
		switch {
		case len(word) < len("SRC="):
		case word[0] == '[': // a packet in a message of ICMP
			words = nil
		case word[3] == '=':
			switch string(word[:3]) {
			case "SRC":
				client = word[4:]
			case "SPT":
				source = word[4:]
			case "DPT":
				port = word[4:]
			}
		case len(word) > 6 && string(word[:6]) == "PROTO=":
			protocol = word[6:]
		}
	}
	if !isAddress(client) || protocol == nil {
		return false
	}
	ev.Set(match.Client, client)
	if allDigits(port) {
		ev.Set(match.Object, port)
	}
	ev.SetNamed("proto", protocol)
	if source != nil {
		ev.SetNamed("spt", source)
	}
	ev.SetNamed("reason", reasonBlocked)
	ev.SetNamed("program", programKernel)
	return true
}

// isAllowed reports whether the text of a rule says that it let a packet pass.
func isAllowed(text []byte) bool {
	if len(text) == 0 {
		return false
	}
	return bytes.Contains(text, []byte("ALLOW")) || bytes.Contains(text, []byte("ACCEPT")) || bytes.Contains(text, []byte("AUDIT"))
}
