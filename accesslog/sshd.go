package accesslog

import (
	"bytes"

	"github.com/lately-go/lately/match"
)

// sshd reads the failed logins of OpenSSH's server from a syslog line:
//
//	Mon dd hh:mm:ss ... sshd[n]: Failed password for USER from CLIENT port n ssh2
//	Mon dd hh:mm:ss ... sshd[n]: error: PAM: Authentication failure for USER from CLIENT
//
// The method may be none instead of password, ssh2 may be missing, and the user
// may be preceded by "invalid user" or "illegal user". The user is what the
// client says it is, so the client's address is sought from the end of the
// line, which the client cannot write.
//
// Other lines of syslog are skipped.
func (p *Parser) sshd(line []byte, ev *match.Event) bool {
	stamp, ok := readSysStamp(line)
	if !ok {
		return false
	}
	t, ok := p.years.time(stamp)
	if !ok {
		return false
	}
	client, ok := sshdTail(line)
	var user []byte
	if ok {
		user, ok = client.user(line)
	}
	if !ok {
		p.skipped = stamp.end < len(line) && !isFailedLogin(line)
		return false
	}
	ev.Time = t
	ev.Set(match.Client, line[client.from:client.end])
	ev.Set(match.User, user)
	return true
}

// sshdClient is the client at the end of a line.
type sshdClient struct {
	from, end int
	pam       bool // no port follows
}

const sshdFrom = " from "

// sshdTail finds ` from CLIENT port n[ ssh2]` or ` from CLIENT` at the end.
func sshdTail(line []byte) (c sshdClient, ok bool) {
	c.end = len(line)
	port := bytes.TrimSuffix(line, []byte(" ssh2"))
	digits := len(port)
	for digits > 0 && isDigit(port[digits-1]) {
		digits--
	}
	c.pam = true
	if before, ok := bytes.CutSuffix(port[:digits], []byte(" port ")); ok && digits < len(port) {
		c.end, c.pam = len(before), false
	}
	c.from = c.end
	for c.from > 0 && !isBlank[line[c.from-1]] {
		c.from--
	}
	return c, c.from < c.end && bytes.HasSuffix(line[:c.from], []byte(sshdFrom))
}

// user returns the user of the first message of the line that ends with this
// client. It is false when there is none.
func (c sshdClient) user(line []byte) ([]byte, bool) {
	for i := 0; ; {
		message := sshdMessage(line, i)
		if message < 0 {
			return nil, false
		}
		i = message - 1 // the space may be that of the next tag
		text := c.afterVerb(line[message:])
		user := len(line) - len(text)
		if end := c.from - len(sshdFrom); text != nil && user <= end {
			return withoutInvalid(line[user:end]), true
		}
	}
}

// sshdMessage returns the index behind the first ` sshd[n]: ` at i or behind,
// -1 when there is none.
func sshdMessage(line []byte, i int) int {
	const tag = " sshd["
	for {
		hop := bytes.Index(line[i:], []byte(tag))
		if hop < 0 {
			return -1
		}
		i += hop + len(tag)
		digits, rest := leadingDigits(line[i:])
		if len(digits) > 0 && bytes.HasPrefix(rest, []byte("]: ")) {
			return i + len(digits) + len("]: ")
		}
	}
}

// What a message begins with when its client has a port, and when not.
var (
	portVerbs = []string{"Failed password for ", "Failed none for "}
	bareVerbs = []string{"error: PAM: Authentication failure for "}
)

// afterVerb returns what follows the words that a message with this kind of
// client begins with, nil when it begins otherwise.
func (c sshdClient) afterVerb(message []byte) []byte {
	verbs := portVerbs
	if c.pam {
		verbs = bareVerbs
	}
	for _, v := range verbs {
		if rest, ok := bytes.CutPrefix(message, []byte(v)); ok {
			return rest
		}
	}
	return nil
}

// isFailedLogin reports whether the first message of sshd in the line begins as that
// of a failed login does.
func isFailedLogin(line []byte) bool {
	message := sshdMessage(line, 0)
	return message >= 0 && ((sshdClient{}).afterVerb(line[message:]) != nil || (sshdClient{pam: true}).afterVerb(line[message:]) != nil)
}

func withoutInvalid(user []byte) []byte {
	user = bytes.TrimPrefix(user, []byte("invalid user "))
	return bytes.TrimPrefix(user, []byte("illegal user "))
}
