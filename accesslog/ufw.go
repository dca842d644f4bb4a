package accesslog

import (
	"bytes"

	"github.com/lately-go/lately/match"
)

const ufwBlock = "[UFW BLOCK]"

// isUFW reports whether a line of syslog is about a packet that was dropped.
func isUFW(line []byte) bool { return bytes.Contains(line, []byte(ufwBlock)) }

// readBlocked reads the packets that Ubuntu's firewall has dropped, from the kernel's
// syslog lines:
//
//	Mon dd hh:mm:ss ... [UFW BLOCK] ... SRC=CLIENT ... PROTO=TCP SPT=n DPT=OBJECT ...
//
// Client is the source address, Object the destination port, and the protocol and the
// source port are the fields "proto" and "spt". If the line is about a packet without a
// port, such as one of ICMP, or about something else, other is true.
func readBlocked(message []byte, ev *match.Event) (ok, other bool) {
	_, words, ok := bytes.Cut(message, []byte(ufwBlock))
	if !ok {
		return false, true
	}
	var client, protocol, source []byte
	for {
		end := bytes.IndexByte(words, ' ')
		if end < 0 { // the last word may be cut off, and none of those below is last
			return false, client != nil && !bytes.HasPrefix(words, []byte("DPT="))
		}
		word := words[:end]
		words = words[end+1:]
		switch {
		case len(word) < len("SRC="):
		case string(word[:4]) == "SRC=":
			client = word[4:]
		case string(word[:4]) == "SPT=":
			source = word[4:]
		case bytes.HasPrefix(word, []byte("PROTO=")):
			protocol = word[6:]
		case string(word[:4]) == "DPT=":
			port := word[4:]
			if digits, _ := leadingDigits(port); len(client) == 0 || len(digits) == 0 || len(digits) < len(port) {
				return false, false
			}
			ev.Set(match.Client, client)
			ev.Set(match.Object, port)
			if protocol != nil {
				ev.SetNamed("proto", protocol)
			}
			if source != nil {
				ev.SetNamed("spt", source)
			}
			return true, false
		}
	}
}
