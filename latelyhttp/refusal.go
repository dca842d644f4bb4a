package latelyhttp

import (
	"net/http"
	"strconv"

	"github.com/lately-go/lately/internal/http/refusal"
)

// refuse answers r, which v refuses.
func (m *Middleware) refuse(w http.ResponseWriter, r *http.Request, p *plan, s *state, v *Verdict) {
	h := w.Header()
	refused := refusal.Refusal{Set: p.Set, Policies: &p.Policies, Decision: v.Decision, Outcomes: v.Outcomes}
	refused.WriteHeader(h, m.config.Jitter)
	h["Cache-Control"] = []string{"no-store"}
	if m.config.OnRefused != nil {
		m.config.OnRefused(w, r, *v)
		return
	}
	var page *refusal.Page
	if m.config.Page != nil {
		page = m.config.Page.page
	}
	body, media, status := refused.AppendBody(s.Text[:0], page, r.Header, h)
	s.Text = body
	h["Content-Type"] = []string{media}
	h["Content-Length"] = []string{strconv.Itoa(len(body))}
	w.WriteHeader(status)
	if r.Method != http.MethodHead {
		w.Write(body) // the client may be gone
	}
}
