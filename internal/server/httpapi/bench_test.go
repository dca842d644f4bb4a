package httpapi

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/lately-go/lately/internal/test/must"
)

// BenchmarkDecisions compares check and take with a net/http server that reads the same body and answers as much: 64
// connections over loopback, each with one request at a time, and a client that does the minimum.
func BenchmarkDecisions(b *testing.B) {
	const check = `{"event":{"client":"203.0.113.%d","path":"/x"},"cost":1}`
	const take = `{"rule":"per-client","key":"203.0.113.%d","cost":1}`
	b.Run("echo", func(b *testing.B) { benchmarkEcho(b, check) })
	b.Run("check", func(b *testing.B) { benchmarkServer(b, "/v1/check", check, nil) })
	b.Run("take", func(b *testing.B) { benchmarkServer(b, "/v1/take", take, nil) })
	b.Run("check by 100", func(b *testing.B) {
		benchmarkServer(b, "/v1/check", `{"events":[`+strings.Repeat(`{"event":{"client":"203.0.113.%[1]d","path":"/x"},"cost":1},`, 99)+`{"event":{"client":"203.0.113.%[1]d","path":"/x"}}]}`, nil)
	})
	b.Run("check with token", func(b *testing.B) {
		all := tokens(b)
		benchmarkServer(b, "/v1/check", check, func(c *Config) { c.Tokens = tokensOf(all) })
	})
}

func benchmarkEcho(b *testing.B, body string) {
	answer := []byte(`{"allowed":true,"limit":60,"remaining":59,"retry_after_ms":0,"reset_after_ms":60000,"rule":"per-client","banned_until_ms":0}` + "\n")
	l := must.Get(net.Listen("tcp", "127.0.0.1:0"))(b)
	server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		io.Copy(io.Discard, r.Body)
		w.Header()["Content-Type"] = jsonType
		w.Write(answer)
	})}
	go server.Serve(l)
	defer server.Shutdown(context.Background())
	load(b, l.Addr().String(), "/", body)
}

func benchmarkServer(b *testing.B, path, body string, change func(*Config)) {
	load(b, serve(b, newServer(b, change)), path, body)
}

// load sends b.N requests over 64 connections.
func load(b *testing.B, addr, path, body string) {
	const conns = 64
	var group sync.WaitGroup
	var failed sync.Once
	share := make(chan int, b.N)
	for i := range b.N {
		share <- i
	}
	close(share)
	b.ResetTimer()
	from := time.Now()
	for i := range conns {
		group.Go(func() {
			if err := drive(addr, path, fmt.Sprintf(body, i), share); err != nil {
				failed.Do(func() { b.Error(err) })
			}
		})
	}
	group.Wait()
	b.ReportMetric(float64(b.N)/time.Since(from).Seconds(), "requests/s")
}

// drive sends a request for each part of share. It relies on answers that end in "}\n".
func drive(addr, path, body string, share <-chan int) error {
	conn, err := net.Dial("tcp", addr)
	if err != nil {
		return err
	}
	defer conn.Close()
	out := []byte("POST " + path + " HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nAuthorization: Bearer " + checkToken +
		"\r\nContent-Length: " + strconv.Itoa(len(body)) + "\r\n\r\n" + body)
	in := make([]byte, 1<<16)
	for range share {
		if _, err := conn.Write(out); err != nil {
			return err
		}
		for n := 0; ; {
			m, err := conn.Read(in[n:])
			if err != nil {
				return fmt.Errorf("%w after %.200s", err, in[:n])
			}
			if n += m; in[n-2] == '}' && in[n-1] == '\n' {
				if string(in[:15]) != "HTTP/1.1 200 OK" {
					return fmt.Errorf("answered %.200s", in[:n])
				}
				break
			}
		}
	}
	return nil
}
