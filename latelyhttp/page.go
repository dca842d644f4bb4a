package latelyhttp

import "github.com/lately-go/lately/internal/http/refusal"

// A Page is an HTML page for refused requests of browsers, in the language and the design of a
// site; see [Config.Page]. It does not change and is safe for concurrent use. Make one with [NewPage].
type Page struct {
	page *refusal.Page
}

// NewPage returns the page of an HTML text, in which {{retry_after}} is replaced by the
// seconds of Retry-After (nothing if waiting does not help), {{status}} by the status code,
// and {{title}} by the title of the problem document. The error names an unknown placeholder
// and its line.
func NewPage(text string) (*Page, error) {
	page, err := refusal.NewPage(text)
	if err != nil {
		return nil, err
	}
	return &Page{page}, nil
}
