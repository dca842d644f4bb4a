package enforce

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/lately-go/lately/api"
	"github.com/lately-go/lately/internal/file/fileperm"
)

// A Webhook is a URL to which bans and their ends are sent. The body of a request is an
// [api.EventList] with bans and unbans; an unban is sent too when a ban runs out. A request
// that is not answered with a status of 2xx is sent again, so a receiver must accept an event
// twice. After the start all bans are sent.
type Webhook struct {
	// URL is where to send, with the scheme https or http.
	URL string

	// SecretFile has the key of the signatures, of at least 16 bytes without the space
	// around it.
	SecretFile string
}

// SignatureHeader has the time of a request of a webhook and its signature, as
// "t=1700000000,v1=HEX". Check it with [Sign].
const SignatureHeader = "Lately-Signature"

const (
	// webhookBatch is how many events a request has at most, and webhookTimeout how long
	// it may take.
	webhookBatch   = 500
	webhookTimeout = 10 * time.Second

	minSecret, maxSecret = 16, 1 << 10
)

// Sign returns the value of SignatureHeader of a request with that body: the HMAC-SHA256
// of the time in Unix seconds, a full stop and the body.
func Sign(secret []byte, at time.Time, body []byte) string {
	mac := hmac.New(sha256.New, secret)
	seconds := strconv.FormatInt(at.Unix(), 10)
	mac.Write([]byte(seconds + "."))
	mac.Write(body)
	return "t=" + seconds + ",v1=" + hex.EncodeToString(mac.Sum(nil))
}

// validate returns an error that names the wrong setting.
func (w *Webhook) validate() error {
	if (w.URL == "") != (w.SecretFile == "") {
		return errors.New("webhook and webhook-secret-file: one is missing: must be both or none")
	}
	if u, err := url.Parse(w.URL); w.URL != "" && (err != nil || u.Host == "" || u.Scheme != "https" && u.Scheme != "http") {
		return errors.New("webhook: must be a URL such as https://example.org/bans") // which may have a password
	}
	return nil
}

// webhook is the target of a Webhook.
type webhook struct {
	url    string
	secret []byte
	now    func() time.Time
	client http.Client
}

func newWebhook(w Webhook, now func() time.Time) (*webhook, error) {
	secret, err := fileperm.ReadFile(w.SecretFile, maxSecret)
	if err != nil {
		return nil, fmt.Errorf("webhook-secret-file: %w", err)
	}
	if secret = bytes.TrimSpace(secret); len(secret) < minSecret {
		return nil, fmt.Errorf("webhook-secret-file: a secret of %d bytes: must be at least %d", len(secret), minSecret)
	}
	return &webhook{url: w.URL, secret: secret, now: now, client: http.Client{Timeout: webhookTimeout, CheckRedirect: stay}}, nil
}

// stay does not follow a redirect, which would send bans to somebody else.
func stay(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }

// apply sends one request with all changes.
func (w *webhook) apply(ctx context.Context, _ bool, changes []change) error {
	if len(changes) == 0 {
		return nil // at the start, when nothing is banned
	}
	list := api.EventList{Events: make([]api.Event, len(changes))}
	for i, c := range changes {
		list.Events[i] = c.event()
	}
	body, _ := json.Marshal(&list) // texts, numbers and times of this era have no errors
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, w.url, bytes.NewReader(body))
	if err != nil {
		return fmt.Errorf("webhook: %w", withoutURL(err))
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("User-Agent", "lately")
	r.Header.Set(SignatureHeader, Sign(w.secret, w.now(), body))
	answer, err := w.client.Do(r)
	if err != nil {
		return fmt.Errorf("webhook: %s: %w", r.URL.Host, withoutURL(err))
	}
	defer answer.Body.Close()
	_, _ = io.Copy(io.Discard, io.LimitReader(answer.Body, 1<<16)) // so that the connection is used again
	if answer.StatusCode/100 != 2 {
		return fmt.Errorf("webhook: status %s: must be 2xx", answer.Status)
	}
	return nil
}

// withoutURL returns err without the URL in it: user, path and query may be secrets.
func withoutURL(err error) error {
	if e, ok := errors.AsType[*url.Error](err); ok {
		return e.Err
	}
	return err
}

// verify finds nothing: a receiver keeps what it acknowledged.
func (*webhook) verify(context.Context) error { return nil }

// event returns c as events have it.
func (c *change) event() api.Event {
	if c.ended {
		return api.Event{Type: api.BanEnded, Time: c.at.UTC(), Rule: c.ban.Rule, Key: c.ban.Key}
	}
	return api.Event{Type: api.BanStarted, Time: c.at.UTC(), Ban: &c.ban}
}
