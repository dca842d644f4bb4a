package main

import (
	"net/http"
	"net/http/httptest"
	"testing"
)

func TestExample(t *testing.T) {
	e, err := newEcho()
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(e)
	defer server.Close()
	for n := range 7 {
		r, err := server.Client().Get(server.URL + "/items/1")
		if err != nil {
			t.Fatal(err)
		}
		r.Body.Close()
		if refused := r.StatusCode == http.StatusTooManyRequests; refused != (n >= 5) {
			t.Errorf("request %d: %s", n+1, r.Status)
		}
	}
}
