package accesslog_test

import (
	"testing"

	"github.com/lately-go/lately/accesslog"
	"github.com/lately-go/lately/match"
)

func TestUFW(t *testing.T) {
	const start = "May  8 00:00:52 gate kernel: [35266.781076] "
	knows := append(match.FieldNames(), "proto", "spt")
	checkTable(t, "syslog-ufw", accesslog.Options{Year: 2022}, true, knows, []lineTest{
		{
			"packet", start + "[UFW BLOCK] IN=e0 OUT= SRC=203.0.113.4 DST=192.0.2.84 LEN=52 PROTO=TCP SPT=31745 DPT=25 WINDOW=1 ",
			"2022-05-08T00:00:52Z",
			[]string{"client=203.0.113.4", "object=25", "proto=TCP", "spt=31745"},
		},
		{"no ports", start + "[UFW BLOCK] IN=e0 SRC=203.0.113.4 DST=192.0.2.84 PROTO=2 ", "", bad},
		{"allowed", start + "[UFW ALLOW] SRC=203.0.113.4 DST=x DPT=25 ", "", bad},
		{"line ends at the port", start + "[UFW BLOCK] SRC=203.0.113.4 DST=x DPT=25", "", bad},
		{"the first port counts", start + "[UFW BLOCK] SRC=a x DPT=1 SRC=b x DPT=2 ", "", []string{"client=a", "object=1"}},
		{"and the last SRC before it", start + "[UFW BLOCK] SRC=a x SRC=b DPT=1 ", "", []string{"client=b", "object=1"}},
		{"a packet in an ICMP error", start + "[UFW BLOCK] SRC=a PROTO=ICMP TYPE=3 [SRC=b PROTO=UDP SPT=7 DPT=53 LEN=9 ] ", "", []string{"client=a", "object=53", "proto=UDP", "spt=7"}},
		{"no number", start + "[UFW BLOCK] SRC=a DPT=x ", "", bad},
		{"before the tag", start + "SRC=a [UFW BLOCK] x DPT=1 ", "", bad},
		{"empty SRC", start + "[UFW BLOCK] SRC= x DPT=1 ", "", bad},
		{"no time", "[UFW BLOCK] SRC=a x DPT=1 ", "", bad},
	})
}
