package latelyredis

import (
	"bytes"
	"errors"

	"github.com/lately-go/lately/internal/resp"
)

// rueidis 1.0.79 reads some replies without a check of how much there is, and panics if it is less.

var (
	errShape   = errors.New("it is not what the command answers")
	errMessage = errors.New("a message that the server does not send then")
)

// checkReply returns what is wrong with v as a reply to a command of which e is expected.
func checkReply(e expectation, v resp.Value) error {
	aggregate := v.Kind == resp.KindArray || v.Kind == resp.KindSet
	good := true
	switch {
	case e.reply == replyPong:
		good = isPong(v)
	case v.Kind == resp.KindError && !e.begun:
		return checkError(v.Text)
	case e.reply == replyConfirms:
		good = false
	case v.Kind == resp.KindSimple && string(v.Text) == "QUEUED": // in a transaction
	case e.reply == replyPing:
		good = isPong(v)
	case e.reply == replyRole:
		good = aggregate && v.N > 0
	case e.reply == replyPrimary:
		good = !aggregate || v.N > 1
	}
	if !good {
		return errShape
	}
	return nil
}

// isPong reports whether rueidis takes v for the reply to PING.
func isPong(v resp.Value) bool {
	switch v.Kind {
	case resp.KindError:
		return bytes.HasPrefix(v.Text, []byte("LOADING")) || bytes.HasPrefix(v.Text, []byte("BUSY")) || bytes.Contains(v.Text, []byte("'ping'"))
	case resp.KindSimple, resp.KindBulk:
		return string(v.Text) == "PONG"
	}
	return v.Kind == resp.KindArray && v.N > 0 && (string(v.Text) == "pong" || bytes.HasPrefix(v.Text, []byte("pong ")))
}

// checkError returns what is wrong with the text of an error: one that names another node must do so.
func checkError(text []byte) error {
	text = bytes.TrimPrefix(text, []byte("ERR "))
	for _, e := range []struct {
		code   string
		blanks int
	}{{"MOVED", 2}, {"ASK", 2}, {"REDIRECT", 1}} {
		if bytes.HasPrefix(text, []byte(e.code)) && bytes.Count(text, []byte(" ")) < e.blanks {
			return errShape
		}
	}
	return nil
}

// checkMessage returns what is wrong with a message, of which text is the channel and what follows. kept is how much of
// the whole was kept: a message that was cut is not checked.
func checkMessage(text []byte, kept int) error {
	channel, message, _ := bytes.Cut(text, []byte(" "))
	blanks := 0
	switch string(channel) {
	case "+switch-master":
		blanks = 4
	case "+sentinel", "+reboot":
		blanks = 3
	case "+slave", "+sdown", "-sdown":
	default:
		return nil
	}
	if bytes.HasPrefix(message, []byte("slave ")) {
		blanks = 5
	}
	if kept < resp.MaxScanText && bytes.Count(message, []byte(" ")) < blanks {
		return errMessage
	}
	return nil
}
