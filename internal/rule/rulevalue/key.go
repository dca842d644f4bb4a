package rulevalue

import (
	"fmt"
	"strings"

	"github.com/lately-go/lately/match"
)

// KeyField returns the name of a field in a key. The prefix lengths in "client/24" or
// "client/24,48" are set in fold. The second is for IPv6 addresses, whose length the first
// leaves unchanged.
func KeyField(text string, fold *match.Fold) (name string, err error) {
	text = strings.Trim(text, " ")
	bits, ok := strings.CutPrefix(text, match.Client.String()+"/")
	if !ok {
		return text, nil
	}
	v4, v6, both := strings.Cut(bits, ",")
	fold.Off = false
	if fold.IPv4, err = PrefixBits(32)(strings.TrimSpace(v4)); err == nil && both {
		fold.IPv6, err = PrefixBits(128)(strings.TrimSpace(v6))
	}
	if err != nil {
		return "", fmt.Errorf(`key: client/%s: %v, as in client/24 or "client/24,48", where the second is for IPv6`, Clip(bits), err)
	}
	return match.Client.String(), nil
}

// ParseKey parses a key in one text, as on a command line: fields as in a rules file, with commas
// between them, such as "client/24", "host,path" or "user | client". With a prefix length,
// clients are folded even if fold is off.
func ParseKey(fold match.Fold, text string) (k match.Key, err error) {
	texts := strings.Split(text, ",")
	for i := 0; i < len(texts); i++ {
		one := texts[i]
		if i+1 < len(texts) && strings.Contains(one, match.Client.String()+"/") && strings.Trim(texts[i+1], " 0123456789") == "" {
			i++
			one += "," + texts[i]
		}
		names := strings.Split(one, "|")
		for j := range names {
			if names[j], err = KeyField(names[j], &fold); err != nil {
				return match.Key{}, err
			}
		}
		if k, err = match.NewKey(fold, append(k.Fields(), strings.Join(names, " | "))...); err != nil {
			return match.Key{}, err
		}
	}
	return k, nil
}

// PrefixBits returns a parser of prefix lengths. Zero, which a Fold takes for its
// default, is rejected: its author means that all clients are one.
func PrefixBits(most uint64) func(string) (int, error) {
	return func(s string) (int, error) {
		bits, err := Count(s)
		if err != nil || bits < 1 || bits > most {
			return 0, fmt.Errorf("must be a prefix length from 1 to %d", most)
		}
		return int(bits), nil
	}
}
