package accesslog

import (
	"bytes"

	"github.com/lately-go/lately/match"
)

// readSSHD reads the failed logins of OpenSSH's server from a syslog line:
//
//	Mon dd hh:mm:ss ... sshd[n]: Failed password for USER from CLIENT port n ssh2
//	Mon dd hh:mm:ss ... sshd[n]: error: PAM: Authentication failure for USER from CLIENT
//
// The method may be none instead of password, ssh2 may be missing, and the user
// may be preceded by "invalid user" or "illegal user". The client chooses USER, so
// CLIENT is read from the end of the line, which the client cannot write.
func readSSHD(line []byte, ev *match.Event) (ok, other bool) {
	message, _ := sshdMessage(line)
	return readFailedLogin(message, ev)
}

// readFailedLogin sets the fields of ev to those of a failed login. If a message of sshd
// is about something else, other is true.
func readFailedLogin(message []byte, ev *match.Event) (ok, other bool) {
	login, hasPort, ok := cutFailure(message)
	if !ok {
		return false, true
	}
	if hasPort {
		if login, ok = cutPort(login); !ok {
			return false, false
		}
	}
	start := len(login)
	for start > 0 && !isBlank[login[start-1]] {
		start--
	}
	user, ok := bytes.CutSuffix(login[:start], []byte(" from "))
	if !ok || start == len(login) {
		return false, false
	}
	user = bytes.TrimPrefix(user, []byte("invalid user "))
	ev.Set(match.Client, login[start:])
	ev.Set(match.User, bytes.TrimPrefix(user, []byte("illegal user ")))
	return true, false
}

// sshdMessage returns what follows the first ` sshd[n]: ` of a line, or ` sshd-session[n]: `,
// as OpenSSH 9.8 and later write.
func sshdMessage(line []byte) (message []byte, ok bool) {
	for {
		if _, line, ok = bytes.Cut(line, []byte(" sshd")); !ok {
			return nil, false
		}
		line = bytes.TrimPrefix(line, []byte("-session"))
		if len(line) == 0 || line[0] != '[' {
			continue
		}
		line = line[1:]
		digits, rest := leadingDigits(line)
		if message, ok = bytes.CutPrefix(rest, []byte("]: ")); ok && len(digits) > 0 {
			return message, true
		}
	}
}

// isSSHD reports whether sshd wrote a line of syslog.
func isSSHD(line []byte) bool {
	_, ok := sshdMessage(line)
	return ok
}

// cutFailure cuts the words off a message that a failed login begins with, and says
// whether such a message ends with the port of the client.
func cutFailure(message []byte) (login []byte, hasPort, ok bool) {
	for _, words := range []string{"Failed password for ", "Failed none for "} {
		if login, ok = bytes.CutPrefix(message, []byte(words)); ok {
			return login, true, true
		}
	}
	login, ok = bytes.CutPrefix(message, []byte("error: PAM: Authentication failure for "))
	return login, false, ok
}

// cutPort cuts " port n" or " port n ssh2" off the end of s.
func cutPort(s []byte) (before []byte, ok bool) {
	s = bytes.TrimSuffix(s, []byte(" ssh2"))
	end := len(s)
	for end > 0 && isDigit(s[end-1]) {
		end--
	}
	before, ok = bytes.CutSuffix(s[:end], []byte(" port "))
	return before, ok && end < len(s)
}
