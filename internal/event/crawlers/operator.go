package crawlers

import (
	"bytes"
	"slices"
	"strings"
)

// An operator runs crawlers, which its documentation describes how to recognize: the name of the
// address is in one of the domains, and the name has that address.
type operator struct {
	name    string
	agents  []string // parts of the User-Agent headers
	domains []string
}

// operators are in the order of their names. Operators that publish lists of addresses only are
// not among them: those are files of the allow list.
var operators = []operator{
	{"apple", []string{"Applebot"}, []string{"applebot.apple.com"}},
	{"baidu", []string{"Baiduspider"}, []string{"baidu.com", "baidu.jp"}},
	{"bing", []string{"bingbot", "msnbot", "adidxbot", "BingPreview", "MicrosoftPreview"}, []string{"search.msn.com"}},
	{"google", []string{"Google"}, []string{"googlebot.com", "google.com"}},
	{"yahoo", []string{"Slurp"}, []string{"crawl.yahoo.net"}},
	{"yandex", []string{"Yandex"}, []string{"yandex.ru", "yandex.net", "yandex.com"}},
}

// Operators returns the names of the operators whose crawlers can be verified.
func Operators() []string {
	names := make([]string, len(operators))
	for i := range operators {
		names[i] = operators[i].name
	}
	return names
}

// claims reports whether an agent names a crawler of o.
func (o *operator) claims(agent []byte) bool {
	return slices.ContainsFunc(o.agents, func(part string) bool { return bytes.Contains(agent, []byte(part)) })
}

// has reports whether a host is in one of o's domains.
func (o *operator) has(host string) bool {
	return slices.ContainsFunc(o.domains, func(domain string) bool { return strings.HasSuffix(host, "."+domain) })
}
