package respapi

import (
	"bytes"
	"fmt"
	"math"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/lately-go/lately/internal/resp"
	"github.com/lately-go/lately/internal/server/access"
	"github.com/lately-go/lately/internal/test/must"
	"github.com/lately-go/lately/internal/test/resptest"
)

// wantRecords returns how many records args have, by the words of the protocol, or false if
// one is bad.
func wantRecords(args [][]byte) (n int, ok bool) {
	number := func(b []byte, least, most int64) bool {
		x, err := strconv.ParseInt(string(b), 10, 64)
		return err == nil && string(b) == strconv.FormatInt(x, 10) && x >= least && x <= most
	}
	for ; len(args) > 0; args = args[3:] {
		if len(args) < 3 || len(args[0]) == 0 || len(args[0]) > 1024 || !number(args[1], 1, 1<<31) || !number(args[2], 0, math.MaxInt64/1_000_000) {
			return 0, false
		}
		n++
	}
	return n, true
}

// FuzzHotReport has HOT.REPORT take any arguments: it counts all records or none.
func FuzzHotReport(f *testing.F) {
	for _, seed := range []string{"/a 1 0", "/a 1 0 /b 2 59999 /c 3 60000", "/a 1 0 /b x 0", "/a 1", "/a 2147483649 0", "/a 01 0", "/a 1 9223372036855", "/a -1 -1", " 1 0"} {
		f.Add([]byte(strings.ReplaceAll(seed, " ", "\x00")))
	}
	e := newEngine(f)
	s := New(Config{Engine: e})
	f.Fuzz(func(t *testing.T, in []byte) {
		args := bytes.Split(in, []byte{0})
		if len(args) < 3 || len(args) > 1000 {
			return
		}
		var out bytes.Buffer
		c := newConn(s, &tape{}, access.AddrOf((&tape{}).RemoteAddr()))
		c.w = resp.NewWriter(&out)
		was := must.Get(e.Hot().Stats("product"))(t)
		c.do(append([][]byte{[]byte("HOT.REPORT"), []byte("product")}, args...))
		c.w.Flush()
		v := must.Get(resptest.NewReader(&out).Next())(t)
		now := must.Get(e.Hot().Stats("product"))(t)
		a, b := was.Rules[0], now.Rules[0]
		counted, handled := b.Records-a.Records, b.Records+b.Late+b.Ignored+b.Dropped-a.Records-a.Late-a.Ignored-a.Dropped
		records, ok := wantRecords(args)
		switch {
		case !ok && (v.Kind != '-' || handled != 0 || b.Events != a.Events):
			t.Errorf("%q has a bad record: answered %s, and %d records were handled", args, show(v), handled)
		case ok && (v.Kind != ':' || v.Text != fmt.Sprint(counted) || handled != uint64(records)):
			t.Errorf("%q has %d records: answered %s, %d were handled", args, records, show(v), handled)
		}
	})
}

// Reports of several connections that come faster than they can be counted wait: no client is disconnected, the memory does
// not grow, each record is counted once, and watchers still receive updates.
func TestReportOverload(t *testing.T) {
	s := start(t, Config{}, false)
	conns, batches, records := 6, 150, 100
	if testing.Short() {
		batches = 30
	}
	watch := s.dial()
	watch.want("HOT.WATCH", `["subscribe" "hot.watch" 1]`)
	told := make(chan bool) // that the last key is hot
	go func() {
		for {
			v, err := watch.r.Next()
			if err != nil || strings.Contains(show(v), "/product/last") {
				told <- err == nil
				return
			}
		}
	}()
	pipeline := make([][]byte, conns)
	for i := range conns {
		for b := range batches {
			args := []string{"HOT.REPORT", "product"}
			for r := range records {
				args = append(args, fmt.Sprintf("/product/%d-%d", b, r), "3", "10")
			}
			pipeline[i] = resp.AppendCommand(pipeline[i], args...)
		}
	}
	var wg sync.WaitGroup
	for i := range conns {
		c := s.dial()
		wg.Go(func() {
			go c.conn.Write(pipeline[i]) // the whole: no flow control but TCP's
			for b := range batches {
				if v, err := c.r.Next(); err != nil || v.Text != fmt.Sprint(records) {
					t.Errorf("batch %d: %s, %v", b, show(v), err)
					return
				}
			}
		})
	}
	wg.Wait()
	stats := must.Get(s.Engine.Hot().Stats("product"))(t)
	if r := stats.Rules[0]; r.Records != uint64(conns*batches*records) || r.Late+r.Ignored+r.Dropped != 0 || s.Cut.Load() != 0 {
		t.Errorf("%+v, %d connections cut; want %d records counted", r, s.Cut.Load(), conns*batches*records)
	}
	keys, err := s.Engine.Hot().List("product")
	if err != nil || len(keys) < 1000 {
		t.Fatalf("%d keys are hot, %v", len(keys), err)
	}
	last := s.dial()
	last.want("HOT.REPORT product /product/last 3 0", "1")
	if !<-told {
		t.Error("the watcher was disconnected")
	}
}

// A value of a key may have any bytes, and with several fields each is an argument.
func TestReportAnyBytes(t *testing.T) {
	s := start(t, Config{}, false)
	c := s.dial()
	c.conn.SetDeadline(time.Now().Add(time.Minute))
	c.conn.Write(resp.AppendCommand(nil, "HOT.REPORT", "product", "/product/\xff\r\n\x00", "3", "0"))
	if got := c.next(); got != "1" {
		t.Fatal(got)
	}
	keys, err := s.Engine.Hot().List("product")
	if err != nil || len(keys) != 1 || keys[0].Values()[0] != "/product/\xff\r\n\x00" {
		t.Errorf("these are hot: %+v, %v", keys, err)
	}
	c.conn.Write(resp.AppendCommand(nil, "HOT.REPORT", "product", strings.Repeat("x", 1025), "3", "0"))
	if got := c.next(); !strings.HasPrefix(got, "-BADARG record 1: ") {
		t.Errorf("a long value: %s", got)
	}
}
