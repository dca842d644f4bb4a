package client

import (
	"bytes"
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
	"strings"
	"time"
)

// Config says how to reach a server. The zero Config is for one on this machine that
// has no tokens.
type Config struct {
	// Token is what the server knows the caller by; "" sends none.
	Token string

	// TLS is the configuration for https addresses; nil is Go's default. It
	// cannot be set together with HTTPClient.
	TLS *tls.Config

	// HTTPClient makes the requests; nil means one of the Client's own. It is
	// copied. Redirects are never followed, whatever it says, and its Timeout is not
	// used, since it would cut the stream of events.
	HTTPClient *http.Client

	// Timeout bounds each request but the stream of events; 0 means 10
	// seconds.
	Timeout time.Duration

	// Insecure lets the token be sent without encryption to an address that
	// is not of this machine.
	Insecure bool
}

const (
	defaultTimeout = 10 * time.Second

	// idleConnections is how many stay open for the next request: as many as
	// a caller makes at once who wants to know everything.
	idleConnections = 8

	// maxAnswer bounds what is read of an answer: 10,000 keys of 4 KiB.
	maxAnswer = 64 << 20

	// maxProblem bounds what is read of an answer that is an error.
	maxProblem = 64 << 10
)

// A Client asks one server. It is safe for concurrent use, keeps connections open
// between requests, and starts no goroutine of its own. Make one with [New]; the
// zero Client is not usable.
type Client struct {
	base    string // without a slash at the end
	config  Config
	http    http.Client
	backoff backoff
	quiet   time.Duration // after which a stream is taken for lost
}

// New returns a Client for the server at addr: "http://127.0.0.1:7380",
// "https://lately.example.org", or a host and port alone, which is taken for http.
// Nothing is sent yet. The error names what is wrong with addr or c.
func New(addr string, c Config) (*Client, error) {
	u, err := parse(addr)
	if err != nil {
		return nil, err
	}
	if c.TLS != nil && c.HTTPClient != nil {
		return nil, errors.New("Config.TLS and Config.HTTPClient are both set; allowed is one of them, since an HTTPClient has a TLS configuration of its own")
	}
	if c.Timeout < 0 {
		return nil, fmt.Errorf("Config.Timeout is %v; allowed is 0 (10s) or more", c.Timeout)
	}
	if strings.ContainsFunc(c.Token, func(r rune) bool { return r <= ' ' || r > '~' }) {
		return nil, errors.New("Config.Token has a blank or a character that is not ASCII; allowed is a token as the server's token file has it")
	}
	if c.Token != "" && u.Scheme == "http" && !c.Insecure && !isLocal(u.Hostname()) {
		return nil, fmt.Errorf("the token would be sent to %s without encryption; allowed is an https address, one of this machine, or Config.Insecure", u.Host)
	}
	if c.Timeout == 0 {
		c.Timeout = defaultTimeout
	}
	client := &Client{base: u.Scheme + "://" + u.Host + strings.TrimRight(u.EscapedPath(), "/"), config: c, backoff: defaultBackoff, quiet: quietStream}
	if c.HTTPClient != nil {
		client.http = *c.HTTPClient
	} else {
		transport := http.DefaultTransport.(*http.Transport).Clone()
		transport.TLSClientConfig = c.TLS
		transport.MaxIdleConnsPerHost = idleConnections
		client.http.Transport = transport
	}
	client.http.Timeout = 0
	client.http.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return client, nil
}

func parse(addr string) (*url.URL, error) {
	text := addr
	if !strings.Contains(addr, "://") {
		text = "http://" + addr
	}
	u, err := url.Parse(text)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.User != nil || u.RawQuery != "" || u.Fragment != "" {
		return nil, fmt.Errorf("the server's address is %q; allowed is http://HOST:PORT or https://HOST:PORT, without user, query and fragment", addr)
	}
	return u, nil
}

// isLocal reports whether what is sent to host stays on this machine.
func isLocal(host string) bool {
	if strings.EqualFold(host, "localhost") {
		return true
	}
	addr, err := netip.ParseAddr(host)
	return err == nil && addr.IsLoopback()
}

// Addr returns the address of the server.
func (c *Client) Addr() string { return c.base }

// Close closes connections that are open and not in use.
func (c *Client) Close() { c.http.CloseIdleConnections() }

// get requests path with a query, and decodes the answer.
func get[T any](ctx context.Context, c *Client, path string, query url.Values) (T, error) {
	if len(query) > 0 {
		path += "?" + query.Encode()
	}
	return answer[T](c.do(ctx, http.MethodGet, path, nil))
}

// post sends in as JSON to path, and decodes the answer.
func post[T any](ctx context.Context, c *Client, path string, in any) (out T, err error) {
	body, err := json.Marshal(in)
	if err != nil {
		return out, err
	}
	return answer[T](c.do(ctx, http.MethodPost, path, body))
}

func answer[T any](c *Client, body []byte, err error) (out T, _ error) {
	if err != nil {
		return out, err
	}
	if err := json.Unmarshal(body, &out); err != nil {
		return out, fmt.Errorf("%s: not a lately server: %w", c.base, err)
	}
	return out, nil
}

// do returns the body of the answer to a request.
func (c *Client) do(ctx context.Context, method, path string, body []byte) (*Client, []byte, error) {
	ctx, cancel := context.WithTimeout(ctx, c.config.Timeout)
	defer cancel()
	resp, err := c.send(ctx, method, path, body)
	if err != nil {
		return c, nil, unwrap(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer+1))
	if err != nil {
		return c, nil, fmt.Errorf("%s: the answer ended early: %w", c.base, err)
	}
	if len(text) > maxAnswer {
		return c, nil, fmt.Errorf("%s: answer too long (max %d MiB)", c.base, maxAnswer>>20)
	}
	return c, text, nil
}

// send sends a request, and returns an answer that is a good one. Its body has to be
// closed.
func (c *Client) send(ctx context.Context, method, path string, body []byte) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, method, c.base+path, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	if body != nil {
		req.Header.Set("Content-Type", "application/json")
	} else {
		req.Body, req.ContentLength = nil, 0
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

// unwrap takes from an error of net/http what it repeats of the request, the query
// with its keys above all.
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
