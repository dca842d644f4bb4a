package main

import (
	"net/http"
	"net/http/httptest"
	"testing"
)

func TestExample(t *testing.T) {
	app, err := newApp()
	if err != nil {
		t.Fatal(err)
	}
	for n := range 7 {
		r, err := app.Test(httptest.NewRequest("GET", "/items/1", nil))
		if err != nil {
			t.Fatal(err)
		}
		if refused := r.StatusCode == http.StatusTooManyRequests; refused != (n >= 5) {
			t.Errorf("request %d: %s", n+1, r.Status)
		}
	}
}
