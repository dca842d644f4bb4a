package latelyhttp_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/lately-go/lately/latelyhttp"
)

func ExamplePerClient() {
	hello := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, "hello") })
	handler := latelyhttp.PerClient(2, time.Minute).Wrap(hello)

	for range 3 {
		w := httptest.NewRecorder()
		handler.ServeHTTP(w, httptest.NewRequest("GET", "/", nil))
		fmt.Println(w.Code)
	}
	// Output:
	// 200
	// 200
	// 429
}

func TestPerClientRejectsLimits(t *testing.T) {
	defer func() {
		if recover() == nil {
			t.Error("a limit without a span was accepted")
		}
	}()
	latelyhttp.PerClient(1, 0)
}
