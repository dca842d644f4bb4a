package accesslog

import (
	"bytes"

	"github.com/lately-go/lately/match"
)

// isBlank has the bytes that end a field: ASCII white space, the ASCII
// separators, and the blanks of Latin-1.
var isBlank = [256]bool{
	'\t': true, '\n': true, '\v': true, '\f': true, '\r': true, ' ': true,
	0x1c: true, 0x1d: true, 0x1e: true, 0x1f: true, 0x85: true, 0xa0: true,
}

// fieldEnd returns the index of the first blank of s from i on.
func fieldEnd(s []byte, i int) int {
	for i < len(s) && !isBlank[s[i]] {
		i++
	}
	return i
}

// spaced returns the index after the field at i and the one space that must
// follow it, -1 if there is no such field.
func spaced(s []byte, i int) int {
	end := fieldEnd(s, i)
	if end == i || end == len(s) || s[end] != ' ' {
		return -1
	}
	return end + 1
}

// clf reads the Common and the Combined Log Format:
//
//	client ident user [dd/Mon/yyyy:hh:mm:ss +zzzz] "request" status size "referer" "agent" "x_forwarded_for"
//
// Only the user may have spaces; it ends at the first " [" after which the line has
// the form above up to the size.
func (p *Parser) clf(line []byte, ev *match.Event) bool {
	client := 0
	for client < len(line) && line[client] == ' ' {
		client++
	}
	ident := spaced(line, client)
	if ident < 0 {
		return false
	}
	user := spaced(line, ident)
	if user < 0 {
		return false
	}
	// The user has one byte at least, and " [" follows it.
	for open := user + 2; open < len(line); open++ {
		hop := bytes.IndexByte(line[open:], '[')
		if hop < 0 {
			return false
		}
		open += hop
		if line[open-1] != ' ' {
			continue
		}
		if e, ok := p.clfRest(line, open); ok {
			if e.result != clfValid {
				return false
			}
			e.fill(line, ev)
			p.unescapePath(ev, 0)
			if line[ident] != '-' && setHostFirst(ev, line[client:ident-1], line[ident:user-1], line[user:open-1]) {
				return true
			}
			ev.Set(match.Client, clientAddress(line[client:ident-1]))
			setUnlessDash(ev, match.User, line[user:open-1])
			return true
		}
	}
	return false
}

// setHostFirst sets the client and the host of a line that begins with the name of a virtual
// host and the address of the client. The host may be an address, and the client may have chosen
// it; an ident is never an address.
func setHostFirst(ev *match.Event, host, client, rest []byte) bool {
	client = clientAddress(client)
	_, user, ok := bytes.Cut(rest, []byte{' '})
	if !ok || nameEnd(host) < len(host) || !isAddress(client) {
		return false
	}
	ev.Set(match.Client, client)
	ev.Set(match.Host, host)
	setUnlessDash(ev, match.User, user)
	return true
}

// clfRest is where the parts of a line after the user are.
type clfRest struct {
	seconds             int64
	result              clfResult
	request, requestEnd int
	status, size, end   int // end is the index after the size
}

// clfHead is the length of `[dd/Mon/yyyy:hh:mm:ss +zzzz] "`.
const clfHead = 1 + clfLen + 3

// clfRest reads the line from the '[' at open to the size. A line may have
// many such places, but as each of them holds a quote that ends the request of
// the one before, the whole search is linear.
func (p *Parser) clfRest(line []byte, open int) (r clfRest, ok bool) {
	r.request = open + clfHead
	if r.request > len(line) || string(line[r.request-3:r.request]) != `] "` {
		return r, false
	}
	r.seconds, r.result = p.clock.read(line[open+1:])
	if r.result == clfOther {
		return r, false
	}
	r.requestEnd = quoteEnd(line, r.request)
	r.status = r.requestEnd + len(`" `)
	r.size = r.status + len("200 ")
	if r.requestEnd < 0 || r.size >= len(line) || line[r.status-1] != ' ' ||
		!isDigit(line[r.status]) || !isDigit(line[r.status+1]) || !isDigit(line[r.status+2]) || line[r.size-1] != ' ' {
		return r, false
	}
	r.end = r.size
	if line[r.size] == '-' {
		r.end++
	} else {
		for r.end < len(line) && isDigit(line[r.end]) {
			r.end++
		}
	}
	return r, r.end > r.size && (r.end == len(line) || line[r.end] == ' ')
}

// quoteEnd returns the index of the first '"' of s, from an index on, that no
// backslash escapes, -1 if there is none. Backslashes work in pairs.
func quoteEnd(s []byte, from int) int {
	for i := from; ; i++ {
		hop := bytes.IndexByte(s[i:], '"')
		if hop < 0 {
			return -1
		}
		i += hop
		run := i
		for run > from && s[run-1] == '\\' {
			run--
		}
		if (i-run)%2 == 0 {
			return i
		}
	}
}

// fill gives ev what r found.
func (r *clfRest) fill(line []byte, ev *match.Event) {
	ev.Time = utc(r.seconds, 0)
	setRequest(ev, line[r.request:r.requestEnd])
	ev.Set(match.Status, line[r.status:r.size-1])
	setUnlessDash(ev, match.Size, line[r.size:r.end])
	if referer, rest, ok := quoted(line[r.end:]); ok {
		setUnlessDash(ev, match.Referer, referer)
		if agent, rest, ok := quoted(rest); ok {
			setUnlessDash(ev, match.Agent, agent)
			if len(rest) > len(` "-"`) {
				setForwardedFor(ev, rest)
			}
		}
	}
}

// setForwardedFor sets the field x_forwarded_for if rest begins with a third value in
// quotes, as in the format main of nginx's own configuration, and that ends in an address.
func setForwardedFor(ev *match.Event, rest []byte) {
	list, _, ok := quoted(rest)
	if !ok {
		return
	}
	last := bytes.TrimSpace(list[bytes.LastIndexByte(list, ',')+1:])
	if isAddress(last) {
		ev.SetNamed("x_forwarded_for", list)
	}
}

// quoted cuts ` "value"` off the start of s.
func quoted(s []byte) (value, rest []byte, ok bool) {
	if len(s) < 3 || s[0] != ' ' || s[1] != '"' {
		return nil, nil, false
	}
	end := quoteEnd(s, 2)
	if end < 0 {
		return nil, nil, false
	}
	return s[2:end], s[end+1:], true
}

// setUnlessDash sets f to v, unless v is the "-" that stands for no value.
func setUnlessDash(ev *match.Event, f match.Field, v []byte) {
	if len(v) != 1 || v[0] != '-' {
		ev.Set(f, v)
	}
}

// clfVHost reads a line that begins with the virtual host as name:port, as
// Apache's other_vhosts_access.log does, and a space.
func (p *Parser) clfVHost(line []byte, ev *match.Event) bool {
	rest := spaced(line, 0)
	if rest < 0 {
		return false
	}
	port := rest - 1
	for port > 0 && isDigit(line[port-1]) {
		port--
	}
	if port == rest-1 || port < len("h:") || line[port-1] != ':' || !p.clf(line[rest:], ev) {
		return false
	}
	ev.Set(match.Host, line[:port-1])
	return true
}

// clfQuoted reads a line that is wrapped in one pair of quotes.
func (p *Parser) clfQuoted(line []byte, ev *match.Event) bool {
	n := len(line)
	return n >= 2 && line[0] == '"' && line[n-1] == '"' && p.clf(line[1:n-1], ev)
}
