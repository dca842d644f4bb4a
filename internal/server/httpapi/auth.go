package httpapi

import (
	"net/http"
	"strings"
	"time"

	"github.com/lately-go/lately/api"
	"github.com/lately-go/lately/internal/server/access"
	"github.com/lately-go/lately/internal/server/apierror"
	"github.com/lately-go/lately/internal/server/listen"
)

// authorize sets the identity of the client, and returns an error if it may not use the
// route. The error of a missing token does not differ by route.
func (s *Server) authorize(c *call) error {
	c.tokens = s.Tokens()
	if c.tokens == nil {
		c.Role = access.Admin
		return nil
	}
	if c.route.role == access.None {
		return nil
	}
	if token := c.token(); token != "" {
		if err := s.check(c, token); err != nil {
			return err
		}
	} else if !c.route.foreign() {
		c.Identity = s.sessions.identity(c.cookie(), c.tokens)
	}
	var names []string
	if c.Role == access.None { // a token and a login count before the certificate
		names = c.certificate()
		c.Identity, _ = c.tokens.Certificate(names)
	}
	switch {
	case c.Role == access.None && names != nil:
		s.RejectCertificate(c.peer(), names)
		return problemf(http.StatusUnauthorized, api.NoAuth, "%s", listen.NoRole(names)).asks()
	case c.Role == access.None:
		s.Unauthorized.Add(1)
		return errNoToken
	case !c.Role.May(c.route.role):
		s.Unauthorized.Add(1)
		return apierror.New(api.NoPerm, "role: %s: must be %s", c.Role, c.route.role)
	}
	return nil
}

// authorized reports whether the subscriber would still be authorized: the tokens are the
// same, and the session has not ended.
func (st *stream) authorized() bool {
	c, tokens := st.c, st.c.s.Tokens()
	return tokens.Equal(c.tokens) && (st.cookie == "" || c.s.sessions.identity(st.cookie, tokens).Role.May(c.route.role))
}

// certificate returns the names of the client's certificate, or nil.
func (c *call) certificate() []string {
	if c.r.TLS == nil || len(c.r.TLS.PeerCertificates) == 0 {
		return nil
	}
	return access.CertificateNames(c.r.TLS.PeerCertificates[0])
}

// token returns the token in the header of c. In forward-auth, Authorization is that of
// the proxy's client.
func (c *call) token() string {
	if t := c.r.Header["X-Lately-Token"]; len(t) > 0 && t[0] != "" {
		return t[0]
	}
	if t := c.r.Header["X-Api-Key"]; len(t) > 0 && c.route.bouncer() {
		return t[0]
	}
	const scheme = "Bearer "
	if t := c.r.Header["Authorization"]; len(t) > 0 && !c.route.foreign() && len(t[0]) > len(scheme) && strings.EqualFold(t[0][:len(scheme)], scheme) {
		return t[0][len(scheme):]
	}
	return ""
}

// check sets the identity of c by a token, or returns an error.
func (s *Server) check(c *call, token string) error {
	role, name, ok := c.tokens.Role(token)
	if !ok {
		s.RejectLogin(c.peer())
		return errToken
	}
	c.Identity = access.Identity{Role: role, Name: name}
	return nil
}

// login begins a session for a token, for browsers.
func login(c *call, req *api.LoginRequest) (api.Session, error) {
	if c.tokens != nil {
		if err := c.s.check(c, req.Token); err != nil {
			return api.Session{}, err
		}
		c.setCookie(c.s.sessions.begin(c.Identity, c.tokens), int(sessionLife/time.Second))
		c.audit("login")
	}
	return api.Session{Role: c.Role.String()}, nil
}

// logout ends the session of the cookie, if there is one.
func logout(c *call, _ *api.Nothing) (api.Nothing, error) {
	c.s.sessions.end(c.cookie())
	c.setCookie("", -1)
	return api.Nothing{}, nil
}

// cookie returns the value of the session cookie, or "".
func (c *call) cookie() string {
	cookie, err := c.r.Cookie(cookieName)
	if err != nil {
		return ""
	}
	return cookie.Value
}

func (c *call) setCookie(id string, age int) {
	http.SetCookie(c.w, &http.Cookie{
		Name: cookieName, Value: id, Path: "/", MaxAge: age,
		HttpOnly: true, SameSite: http.SameSiteStrictMode, Secure: c.r.TLS != nil,
	})
}
