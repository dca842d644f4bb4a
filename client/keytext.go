package client

import (
	"slices"
	"unicode/utf8"
)

// A keyText is the values of a key on the wire. JSON has no bytes that are not UTF-8:
// where there are some, Base64 has the values as they are, and a server's Key is for
// reading only.
type keyText struct {
	Key    []string `json:"key,omitempty"`
	Base64 [][]byte `json:"key_base64,omitempty"`
}

// wireKey returns a key as it is sent.
func wireKey(key []string) keyText {
	if !slices.ContainsFunc(key, func(v string) bool { return !utf8.ValidString(v) }) {
		return keyText{Key: key}
	}
	var t keyText
	for _, v := range key {
		t.Base64 = append(t.Base64, []byte(v))
	}
	return t
}

// values returns the key that was sent.
func (t keyText) values() []string {
	if len(t.Base64) == 0 {
		return t.Key
	}
	key := make([]string, len(t.Base64))
	for i, v := range t.Base64 {
		key[i] = string(v)
	}
	return key
}

// ruleKey is a key under a rule.
type ruleKey struct {
	Rule string `json:"rule"`
	keyText
}
