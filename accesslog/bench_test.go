package accesslog_test

import (
	"bytes"
	"fmt"
	"io"
	"math/rand/v2"
	"testing"

	"github.com/lately-go/lately/accesslog"
	"github.com/lately-go/lately/internal/test/must"
	"github.com/lately-go/lately/match"
)

// benchLines makes lines that look like those of busy logs, with invented values. A line of clf has about 160 bytes.
var benchLines = []struct {
	format string
	line   func(i, second int, rng *rand.Rand) string
}{
	{"clf", clfBenchLine},
	{"clf-vhost", func(i, s int, rng *rand.Rand) string { return "shop.example:443 " + clfBenchLine(i, s, rng) }},
	{"clf-quoted", func(i, s int, rng *rand.Rand) string { return `"` + clfBenchLine(i, s, rng) + `"` }},
	{"json-nginx", func(i, s int, rng *rand.Rand) string {
		return fmt.Sprintf(`{"remote_addr":"192.0.2.%d","remote_user":"-","time_local":"17/Apr/2018:06:%02d:%02d +0000",`+
			`"request":"GET /sticker/%d?page=2 HTTP/1.1","status":"200","body_bytes_sent":"%d","request_time":"0.004",`+
			`"http_referer":"https://shop.example/","http_user_agent":"Mozilla/5.0 (Phone; Finch OS 9) Wren/14.1 Mobile"}`,
			i%256, s/60, s%60, rng.IntN(900), rng.IntN(90000))
	}},
	{"json-zeek-dns", func(i, s int, rng *rand.Rand) string {
		return fmt.Sprintf(`{"_path":"dns","_write_ts":"2018-03-24T17:15:20.866586Z","ts":"2018-03-24T17:%02d:%02d.865716Z",`+
			`"uid":"CqKst53mF3det3eDV9","id.orig_h":"198.51.100.%d","id.orig_p":%d,"id.resp_h":"192.0.2.53","id.resp_p":53,`+
			`"proto":"udp","trans_id":36329,"rtt":0.0008699893951416016,"query":"host%d.example","qclass":1,`+
			`"qclass_name":"C_INTERNET","qtype":1,"qtype_name":"A","rcode":0,"rcode_name":"NOERROR","AA":false,"TC":false,`+
			`"RD":true,"RA":true,"Z":0,"answers":["www.example","203.0.113.16"],"TTLs":[2230.0,41830.0],"rejected":false}`,
			s/60, s%60, i%256, rng.IntN(60000), rng.IntN(100))
	}},
	{"messages", func(i, s int, rng *rand.Rand) string {
		return fmt.Sprintf("May  8 00:%02d:%02d host sshd[%d]: Failed password for invalid user admin from 203.0.113.%d port %d ssh2",
			s/60, s%60, 1000+i, i%256, rng.IntN(60000))
	}},
	{"messages", func(i, s int, rng *rand.Rand) string {
		return fmt.Sprintf("May  8 00:%02d:%02d host kernel: [35266.781076] [UFW BLOCK] IN=ens3 OUT= "+
			"MAC=56:00:03:85:82:df:fe:00:03:85:82:df:08:00 SRC=203.0.113.%d DST=192.0.2.84 LEN=52 TOS=0x02 PREC=0x00 TTL=109 "+
			"ID=63761 DF PROTO=TCP SPT=%d DPT=%d WINDOW=64240 RES=0x00 CWR ECE SYN URGP=0 ",
			s/60, s%60, i%256, rng.IntN(60000), rng.IntN(9000))
	}},
	{"csv:time=2@s,object=5", func(i, s int, rng *rand.Rand) string {
		return fmt.Sprintf("1,%d,2a,512,%d", 5633898+s, rng.IntN(50_000_000))
	}},
	{"json:time=timestamp@ms,object=hash_ids[]", func(i, s int, rng *rand.Rand) string {
		return fmt.Sprintf(`{"timestamp": 1%d000, "input_length": 6758, "output_length": 500, "hash_ids": [0, 1, %d, %d, %d, 5, 6, 7]}`,
			s, rng.IntN(99999), rng.IntN(99999), rng.IntN(99999))
	}},
	{"tsv:time=3@s,client=1,object=5@path", func(i, s int, rng *rand.Rand) string {
		return fmt.Sprintf("host%d.example\t-\t%d\tGET\t/images/launch-%d.gif\t200\t1713\t\t", i%300, 807256800+s, rng.IntN(500))
	}},
}

func clfBenchLine(i, second int, rng *rand.Rand) string {
	return fmt.Sprintf(`198.51.100.%d - - [17/Apr/2018:06:%02d:%02d +0000] "POST /metrics/sticker/%d HTTP/1.1" 200 %d "-" `+
		`"Wren/2.1.0 (Linux; U; Finch 5.1.1; invented V3 Build/LMY47V)"`, i%256, second/60, second%60, rng.IntN(900), rng.IntN(300))
}

// BenchmarkParse reads a thousand lines of five a second, over and over.
func BenchmarkParse(b *testing.B) {
	for _, bench := range benchLines {
		b.Run(bench.format, func(b *testing.B) {
			rng := rand.New(rand.NewPCG(1, 2))
			lines, size := make([][]byte, 1000), 0
			for i := range lines {
				lines[i] = []byte(bench.line(i, i/5, rng))
				size += len(lines[i])
			}
			benchmarkLines(b, bench.format, accesslog.Options{}, lines, int64(size/len(lines)))
		})
	}
}

func benchmarkLines(b *testing.B, format string, o accesslog.Options, lines [][]byte, size int64) {
	readLines(b, newParser(b, format, o), lines, size)
}

func readLines(b *testing.B, p *accesslog.Parser, lines [][]byte, size int64) {
	var ev match.Event
	b.SetBytes(size)
	b.ReportAllocs()
	i := 0
	for b.Loop() {
		if !p.Parse(lines[i], &ev) {
			b.Fatalf("line %d is bad", i)
		}
		for p.Next(&ev) {
		}
		if i++; i == len(lines) {
			i = 0
		}
	}
	b.ReportMetric(1e3/(float64(b.Elapsed().Nanoseconds())/float64(b.N)), "Mlines/s")
}

func newParser(t testing.TB, format string, o accesslog.Options) *accesslog.Parser {
	t.Helper()
	f := must.Get(accesslog.ParseFormat(format))(t)
	p := must.Get(f.NewParser(o))(t)
	return p
}

// BenchmarkRealLogs reads each real log from memory, a line an operation, bad
// ones too.
func BenchmarkRealLogs(b *testing.B) {
	for _, l := range realLogs(b) {
		b.Run(l.File, func(b *testing.B) {
			log := must.Get(io.ReadAll(l.open(b)))(b)
			p := must.Get(l.format(b).NewParser(accesslog.Options{Year: l.Year}))(b)
			var ev match.Event
			b.SetBytes(int64(len(log) / (1 + bytes.Count(log, []byte("\n")))))
			var line []byte
			rest := log
			for b.Loop() {
				line, rest, _ = accesslog.CutLine(rest)
				p.Parse(line, &ev)
				for p.Next(&ev) {
				}
				if len(rest) == 0 {
					rest = log
				}
			}
			b.ReportMetric(1e3/(float64(b.Elapsed().Nanoseconds())/float64(b.N)), "Mlines/s")
		})
	}
}
