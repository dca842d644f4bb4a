package accesslog

import (
	"bytes"

	"github.com/lately-go/lately/match"
)

// ufw reads the packets that Ubuntu's firewall has dropped, from the kernel's
// syslog lines:
//
//	Mon dd hh:mm:ss ... [UFW BLOCK] ... SRC=CLIENT ... PROTO=TCP SPT=n DPT=OBJECT ...
//
// Client is the source address, Object the destination port; a packet without a
// port, such as one of ICMP, is no event, and its line is skipped. The protocol and the source port are the fields "proto"
// and "spt".
func (p *Parser) ufw(line []byte, ev *match.Event) bool {
	stamp, ok := readSysStamp(line)
	if !ok {
		return false
	}
	t, ok := p.years.time(stamp)
	if !ok {
		return false
	}
	block := bytes.Index(line, []byte(ufwBlock))
	if block < 0 {
		p.skipped = stamp.end < len(line)
		return false
	}
	packet, ok := readUFW(line[block+len(ufwBlock):])
	if !ok {
		rest := line[block+len(ufwBlock):]
		p.skipped = bytes.Contains(rest, []byte(" SRC=")) && !bytes.Contains(rest, []byte(" DPT="))
		return false
	}
	ev.Time = t
	ev.Set(match.Client, packet.client)
	ev.Set(match.Object, packet.port)
	if packet.protocol != nil {
		ev.SetNamed("proto", packet.protocol)
	}
	if packet.source != nil {
		ev.SetNamed("spt", packet.source)
	}
	return true
}

const ufwBlock = "[UFW BLOCK]"

// ufwPacket is what a line says of a packet; protocol and source may be nil.
type ufwPacket struct{ client, port, protocol, source []byte }

// readUFW reads ` KEY=value ` words. The packet is that of the last SRC which
// has a DPT behind it, and the DPT the first one there. The space behind the
// value of SRC belongs to it: a DPT must bring its own, so that one right
// behind SRC is for the SRC before.
func readUFW(s []byte) (found ufwPacket, ok bool) {
	var next, before ufwPacket // of the last SRC and the one before, as long as they have no DPT
	free := 0                  // index behind next
	for i := 0; ; i++ {
		hop := bytes.IndexByte(s[i:], ' ')
		if hop < 0 {
			return found, ok
		}
		i += hop
		word := s[i+1:]
		if len(word) < len("SRC=x ") || word[3] != '=' && word[5] != '=' {
			continue
		}
		switch {
		case string(word[:4]) == "SRC=":
			if value := ufwValue(word[4:]); value != nil {
				before, next = next, ufwPacket{client: value}
				free = i + len(" SRC=") + len(value) + len(" ")
			}
		case string(word[:4]) == "DPT=":
			digits, rest := leadingDigits(word[4:])
			if len(digits) == 0 || len(rest) == 0 || rest[0] != ' ' {
				continue
			}
			packet := &next
			if i < free {
				packet = &before
			}
			if packet.client != nil {
				packet.port = digits
				found, ok = *packet, true
				*packet, before = ufwPacket{}, ufwPacket{}
			}
		case string(word[:4]) == "SPT=":
			next.source = ufwValue(word[4:])
		case string(word[:6]) == "PROTO=":
			next.protocol = ufwValue(word[6:])
		}
	}
}

// ufwValue returns the bytes of s up to the space that must end them.
func ufwValue(s []byte) []byte {
	end := spaced(s, 0)
	if end < 0 {
		return nil
	}
	return s[:end-1]
}
