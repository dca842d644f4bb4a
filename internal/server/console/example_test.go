package console_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"

	"github.com/lately-go/lately/internal/server/console"
)

// The page at the root of a path, its files below, all under the policy. The JSON API that it uses belongs next to it,
// under /v1/.
func Example() {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /{$}", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Security-Policy", console.Policy)
		http.ServeFileFS(w, r, console.Files, "index.html")
	})
	mux.Handle("GET /console/", http.StripPrefix("/console/", http.FileServerFS(console.Files)))

	for _, path := range []string{"/", "/console/app.js", "/console/style.css", "/console/nothing"} {
		w := httptest.NewRecorder()
		mux.ServeHTTP(w, httptest.NewRequest("GET", path, nil))
		fmt.Println(path, w.Code)
	}
	// Output:
	// / 200
	// /console/app.js 200
	// /console/style.css 200
	// /console/nothing 404
}
