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
		{"one space for two words", start + "[UFW BLOCK] SRC=203.0.113.4 DPT=25 ", "", bad},
		{"the last SRC counts", start + "[UFW BLOCK] SRC=a x DPT=1 SRC=b x DPT=2 x DPT=3 ", "", []string{"client=b", "object=2"}},
		{"but only with a DPT", start + "[UFW BLOCK] SRC=a x DPT=1 SRC=b x DPT=x ", "", []string{"client=a", "object=1"}},
		{"of its own", start + "[UFW BLOCK] SRC=a x SRC=b DPT=1 ", "", []string{"client=a", "object=1"}},
		{"before the tag", start + "SRC=a [UFW BLOCK] x DPT=1 ", "", bad},
		{"empty SRC", start + "[UFW BLOCK] SRC= x DPT=1 ", "", bad},
		{"no time", "[UFW BLOCK] SRC=a x DPT=1 ", "", bad},
	})
}
