package httpapi_test

import (
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"strings"

	"github.com/lately-go/lately/internal/server/engine"
	"github.com/lately-go/lately/internal/server/httpapi"
	"github.com/lately-go/lately/internal/server/listen"
	"github.com/lately-go/lately/rules"
)

// A server without tokens, as it runs on loopback. A program would call Serve.
func Example() {
	file, err := rules.Parse("rules.yaml", []byte("version: 1\nlimits: [{name: api, key: client, limit: 2 per 1m}]\n"))
	if err != nil {
		log.Fatal(err)
	}
	e, err := engine.New(engine.Config{Rules: file})
	if err != nil {
		log.Fatal(err)
	}
	defer e.Close()
	s, err := httpapi.New(httpapi.Config{Config: listen.Config{Engine: e}})
	if err != nil {
		log.Fatal(err)
	}
	server := httptest.NewServer(s)
	defer server.Close()
	for range 3 {
		r, err := http.Post(server.URL+"/v1/check", "application/json", strings.NewReader(`{"event":{"client":"192.0.2.1"}}`))
		if err != nil {
			log.Fatal(err)
		}
		body, err := io.ReadAll(r.Body)
		r.Body.Close()
		if err != nil {
			log.Fatal(err)
		}
		before, _, _ := strings.Cut(string(body), `,"retry`)
		fmt.Println(before)
	}
	http.DefaultClient.CloseIdleConnections()
	// Output:
	// {"allowed":true,"limit":2,"remaining":1
	// {"allowed":true,"limit":2,"remaining":0
	// {"allowed":false,"limit":2,"remaining":0
}
