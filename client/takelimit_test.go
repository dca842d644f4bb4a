package client_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/lately-go/lately/client"
)

// TestTakeLimitSendsIt checks the bodies with and without a limit.
func TestTakeLimitSendsIt(t *testing.T) {
	bodies := make(chan string, 2)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		bodies <- fmt.Sprintf("%s %s %v", r.URL.Path, body, err)
		w.Header().Set("Content-Type", "application/json")
		io.WriteString(w, `{"allowed":true,"limit":600,"remaining":599,"rule":"plan"}`)
	}))
	defer s.Close()
	c, err := client.New(s.URL, client.Config{})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	for limit, want := range map[uint64]string{
		600: `/v1/take {"rule":"plan","key":["acme"],"cost":2,"limit":600} <nil>`,
		0:   `/v1/take {"rule":"plan","key":["acme"],"cost":2} <nil>`,
	} {
		if d, err := c.TakeLimit(context.Background(), "plan", limit, 2, "acme"); err != nil || d.Limit != 600 {
			t.Errorf("%+v, %v", d, err)
		}
		if got := <-bodies; got != want {
			t.Errorf("sent %s, want %s", got, want)
		}
	}
}
