package accesslog_test

import (
	"testing"

	"github.com/lately-go/lately/accesslog"
	"github.com/lately-go/lately/match"
)

func TestSSHD(t *testing.T) {
	const start = "May  8 00:02:30 gate sshd[15788]: "
	checkTable(t, "syslog-sshd", accesslog.Options{Year: 2022}, true, match.FieldNames(), []lineTest{
		{
			"password", start + "Failed password for root from 203.0.113.9 port 56798 ssh2", "2022-05-08T00:02:30Z",
			[]string{"client=203.0.113.9", "user=root"},
		},
		{
			"invalid user", start + "Failed password for invalid user a b from 203.0.113.9 port 1", "",
			[]string{"client=203.0.113.9", "user=a b"},
		},
		{"none", start + "Failed none for invalid user  from 2001:db8::1 port 1 ssh2", "", []string{"client=2001:db8::1", "user="}},
		{
			"PAM", start + "error: PAM: Authentication failure for illegal user x from host.example", "",
			[]string{"client=host.example", "user=x"},
		},
		{
			"a user cannot pass for a client", start + "Failed password for root from 192.0.2.1 port 7 ssh2 from 203.0.113.9 port 5 ssh2", "",
			[]string{"client=203.0.113.9", "user=root from 192.0.2.1 port 7 ssh2"},
		},
		{"only the first tag counts", start + "Invalid user sshd[2]: Failed password for u from c port 1", "", bad},
		{"one space for two words", start + "Failed password for from 203.0.113.9 port 1 ssh2", "", bad},
		{"publickey", start + "Failed publickey for root from 203.0.113.9 port 1 ssh2", "", bad},
		{"accepted", start + "Accepted password for root from 203.0.113.9 port 1 ssh2", "", bad},
		{"more behind", start + "Failed password for root from 203.0.113.9 port 1 ssh2 [preauth]", "", bad},
		{"no port", start + "Failed password for root from 203.0.113.9", "", bad},
		{"PAM with a port", start + "error: PAM: Authentication failure for root from 203.0.113.9 port 1", "", bad},
		{"no process number", "May  8 00:02:30 gate sshd[]: Failed password for root from 203.0.113.9 port 1", "", bad},
		{"another daemon", "May  8 00:02:30 gate sudo[1]: Failed password for root from 203.0.113.9 port 1", "", bad},
		{"no day", "May 32 00:02:30 gate sshd[1]: Failed password for root from 203.0.113.9 port 1", "", bad},
		{"no leap day", "Feb 29 00:02:30 gate sshd[1]: Failed password for root from 203.0.113.9 port 1", "", bad},
		{"no stamp", "gate sshd[1]: Failed password for root from 203.0.113.9 port 1", "", bad},
		{"stamp only", "May  8 00:02:30 ", "", bad},
		{"empty", "", "", bad},
	})
}
