package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/signal"
	"strconv"
	"strings"

	"github.com/lately-go/lately/internal/server/engine"
	"github.com/lately-go/lately/internal/server/httpapi"
	"github.com/lately-go/lately/internal/server/listen"
	"github.com/lately-go/lately/internal/server/respapi"
	"github.com/lately-go/lately/rules"
)

const benchRules = `version: 1
limits:
  - {name: per-client, key: client, limit: 1000000000 per 1h}
`

// beServer serves by RESP and HTTP, over one engine of these rules, until it is interrupted.
func beServer(text string) error {
	file, err := rules.Parse("rules.yaml", []byte(text))
	if err != nil {
		return err
	}
	e, err := engine.New(engine.Config{Rules: file})
	if err != nil {
		return err
	}
	defer e.Close()
	byRESP := respapi.New(listen.Config{Engine: e})
	byHTTP, err := httpapi.New(httpapi.Config{Config: listen.Config{Engine: e}})
	if err != nil {
		return err
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	ended := make(chan error, 2)
	for _, serve := range []func(context.Context, net.Listener) error{byRESP.Serve, byHTTP.Serve} {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return err
		}
		fmt.Println(l.Addr())
		go func() { ended <- serve(ctx, l) }()
	}
	return errors.Join(<-ended, <-ended)
}

// One decision as the HTTP listener tells it.
const decision = `{"allowed":true,"limit":1000000000,"remaining":999999999,"retry_after_ms":0,"reset_after_ms":3600000,"rule":"per-client","banned_until_ms":0}`

// beEcho answers as the HTTP listener does to one event, or to a hundred, and decides
// nothing: what net/http takes by itself.
func beEcho() error {
	mux := http.NewServeMux()
	for path, answer := range map[string]string{
		"/1":   decision + "\n",
		"/100": `{"decisions":[` + strings.Repeat(decision+",", 99) + decision + "]}\n",
	} {
		mux.HandleFunc(path, func(w http.ResponseWriter, r *http.Request) {
			io.Copy(io.Discard, r.Body)
			w.Header()["Content-Type"] = []string{"application/json"}
			w.Header()["Content-Length"] = []string{strconv.Itoa(len(answer))} // as lately does
			w.Write([]byte(answer))
		})
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	fmt.Println(l.Addr())
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	s := &http.Server{Handler: mux}
	go func() {
		<-ctx.Done()
		s.Close()
	}()
	if err := s.Serve(l); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}
