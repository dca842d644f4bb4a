package console_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"

	"github.com/lately-go/lately/server/console"
)

// The page at the root of a path, its files below, all under the policy. The JSON
// API that it asks belongs next to it, under /v1/.
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
		kind, _, _ := strings.Cut(w.Header().Get("Content-Type"), ";")
		fmt.Println(path, w.Code, kind)
	}
	// Output:
	// / 200 text/html
	// /console/app.js 200 text/javascript
	// /console/style.css 200 text/css
	// /console/nothing 404 text/plain
}
