package client

import (
	"bytes"
	"cmp"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"path/filepath"
	"strings"
	"time"
)

// Config configures a [Client]. The zero Config is for a server on this machine
// without tokens.
type Config struct {
	// Token is sent with each request; "" sends none.
	Token string

	// TLS is the configuration for https addresses; nil is Go's default. It
	// cannot be set together with HTTPClient.
	TLS *tls.Config

	// HTTPClient makes the requests; nil means a new one. It is copied.
	// Redirects are never followed, and its Timeout is not used, since it would
	// end the stream of events.
	HTTPClient *http.Client

	// Timeout bounds each request except the stream of events; 0 means 10 seconds.
	Timeout time.Duration

	// Insecure allows sending the token to other machines without encryption.
	Insecure bool
}

const (
	defaultTimeout = 10 * time.Second

	// idleConnections is how many connections stay open: `lately top` makes as many
	// requests at once.
	idleConnections = 8

	// maxAnswer is the largest answer that is read, in bytes: 10,000 keys of 4
	// KiB.
	maxAnswer = 64 << 20

	// maxProblem is the largest part of an error that is read, in bytes.
	maxProblem = 64 << 10
)

// A Client sends requests to one server. It is safe for concurrent use, keeps connections open
// between requests, and starts no goroutine of its own. Make one with [New]; the
// zero Client is not usable.
type Client struct {
	addr   string
	base   string // of URLs, without a slash at the end
	config Config
	http   http.Client
}

// New returns a Client for the server at addr: "http://127.0.0.1:7380",
// "https://lately.example.org", a host and port, which means http, or the Unix socket
// "unix:/run/lately/http.sock". It sends nothing. The error names the bad value in
// addr or c and what it must be.
func New(addr string, c Config) (*Client, error) {
	path, unix := socketPath(addr)
	if unix && (path == "" || c.HTTPClient != nil || c.TLS != nil) {
		return nil, fmt.Errorf("server address: %q: must be unix:PATH with an absolute path, without Config.HTTPClient and Config.TLS", addr)
	}
	if unix {
		addr = "http://localhost"
	}
	u, err := parse(addr)
	if err != nil {
		return nil, err
	}
	if c.TLS != nil && c.HTTPClient != nil {
		return nil, errors.New("Config.TLS and Config.HTTPClient: both set: must be one of them, since an HTTPClient has a TLS configuration of its own")
	}
	if c.Timeout < 0 {
		return nil, fmt.Errorf("Config.Timeout: %v: must be 0 (10s) or more", c.Timeout)
	}
	if strings.ContainsFunc(c.Token, notVisible) {
		return nil, errors.New("Config.Token: a blank, or a character that is not ASCII: must be a token from the server's token file")
	}
	if c.Token != "" && u.Scheme == "http" && !c.Insecure && !isLocal(u.Hostname()) {
		return nil, fmt.Errorf("Config.Token: it would be sent to %s without encryption: must be an https address, one of this machine, or Config.Insecure", u.Host)
	}
	c.Timeout = cmp.Or(c.Timeout, defaultTimeout)
	client := &Client{base: u.Scheme + "://" + u.Host + strings.TrimRight(u.EscapedPath(), "/"), config: c}
	client.addr = client.base
	if unix {
		client.addr = "unix:" + path
	}
	if c.HTTPClient != nil {
		client.http = *c.HTTPClient
	} else {
		client.http.Transport = newTransport(c.TLS, path)
	}
	client.http.Timeout = 0
	client.http.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return client, nil
}

// newTransport returns the default transport, to the Unix socket at path unless that is "".
func newTransport(c *tls.Config, path string) *http.Transport {
	t := http.DefaultTransport.(*http.Transport).Clone()
	t.TLSClientConfig = c
	t.MaxIdleConnsPerHost = idleConnections
	if path != "" {
		t.Proxy = nil
		t.DialContext = func(ctx context.Context, _, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, "unix", path)
		}
	}
	return t
}

func parse(addr string) (*url.URL, error) {
	text := addr
	if !strings.Contains(addr, "://") {
		text = "http://" + addr
	}
	u, err := url.Parse(text)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.Host[0] == '-' || u.User != nil || u.RawQuery != "" || u.Fragment != "" {
		return nil, fmt.Errorf("server address: %q: must be http://HOST:PORT, https://HOST:PORT or unix:PATH, without user, query and fragment", addr)
	}
	return u, nil
}

// socketPath returns the path of the address of a Unix socket, "" if it is not absolute, and whether it
// is an address of this form.
func socketPath(addr string) (path string, unix bool) {
	path, unix = strings.CutPrefix(addr, "unix:")
	if !filepath.IsAbs(path) {
		return "", unix
	}
	return filepath.Clean(path), unix
}

// isLocal reports whether host is this machine.
func isLocal(host string) bool {
	if strings.EqualFold(host, "localhost") {
		return true
	}
	addr, err := netip.ParseAddr(host)
	return err == nil && addr.IsLoopback()
}

// Addr returns the address of the server.
func (c *Client) Addr() string { return c.addr }

// Close closes idle connections.
func (c *Client) Close() { c.http.CloseIdleConnections() }

// get requests path with a query, and decodes the answer.
func get[T any](ctx context.Context, c *Client, path string, query url.Values) (T, error) {
	if len(query) > 0 {
		path += "?" + query.Encode()
	}
	return do[T](ctx, c, http.MethodGet, path, nil)
}

// post sends in as JSON to path, and decodes the answer.
func post[T any](ctx context.Context, c *Client, path string, in any) (out T, err error) {
	body, err := json.Marshal(in)
	if err != nil {
		return out, err
	}
	return do[T](ctx, c, http.MethodPost, path, body)
}

// do sends a request and decodes the answer.
func do[T any](ctx context.Context, c *Client, method, path string, body []byte) (out T, err error) {
	ctx, cancel := context.WithTimeout(ctx, c.config.Timeout)
	defer cancel()
	resp, err := c.send(ctx, method, path, body)
	if err != nil {
		return out, unwrap(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer+1))
	if err != nil {
		return out, fmt.Errorf("%s: the answer ended early: %w", c.addr, err)
	}
	if len(text) > maxAnswer {
		return out, fmt.Errorf("%s: answer too long (max %d MiB)", c.addr, maxAnswer>>20)
	}
	if err := json.Unmarshal(text, &out); err != nil {
		return out, fmt.Errorf("%s: not a lately server: %w", c.addr, err)
	}
	return out, nil
}

// send sends a request. Any status but success is an error.
func (c *Client) send(ctx context.Context, method, path string, body []byte) (*http.Response, error) {
	var content io.Reader
	if body != nil {
		content = bytes.NewReader(body)
	}
	req, err := http.NewRequestWithContext(ctx, method, c.base+path, content)
	if err != nil {
		return nil, err
	}
	if body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	if c.config.Token != "" {
		req.Header.Set("Authorization", "Bearer "+c.config.Token)
	}
	resp, err := c.http.Do(req)
	if err != nil {
		return nil, err
	}
	if resp.StatusCode/100 != 2 {
		defer resp.Body.Close()
		return nil, problem(resp)
	}
	return resp, nil
}

// unwrap removes from an error of net/http what repeats the request, such as keys in the
// query.
func unwrap(err error) error {
	if e, ok := errors.AsType[*url.Error](err); ok {
		err = e.Err
	}
	if e, ok := errors.AsType[*net.OpError](err); ok && e.Op == "dial" {
		return fmt.Errorf("no connection: %w", err)
	}
	if errors.Is(err, context.DeadlineExceeded) {
		return fmt.Errorf("no answer in time: %w", err)
	}
	return err
}
