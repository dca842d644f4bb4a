package httpapi

import (
	"net/http"
	"strings"
	"time"

	"github.com/lately-go/lately/api"
	"github.com/lately-go/lately/internal/server/access"
	"github.com/lately-go/lately/internal/server/engine"
)

// role returns the role that a need asks for.
func (n need) role() access.Role {
	switch n {
	case everyone:
		return access.None
	case toRead:
		return access.Read
	case toCheck:
		return access.Check
	}
	return access.Admin
}

// authorize finds out who asks, and returns an error if he may not ask for the
// route. It says the same of no token and of a wrong one.
func (s *Server) authorize(c *call) error {
	tokens := s.Tokens()
	c.tokens = tokens
	if tokens == nil {
		c.role = access.Admin
		return nil
	}
	if c.route.need == everyone {
		return nil // who he is does not matter, and is not looked at
	}
	if token := s.token(c); token != "" {
		if err := s.check(c, tokens, token); err != nil {
			return err
		}
	} else if !c.route.foreign {
		c.role, c.who = s.sessions.role(c.r, tokens)
	}
	switch {
	case c.role == access.None:
		s.Unauthorized.Add(1)
		return errNoToken
	case !c.role.May(c.route.need.role()):
		s.Unauthorized.Add(1)
		return &engine.Error{Code: api.NoPerm, Message: "the role is " + c.role.String() + "; needed is " + c.route.need.role().String()}
	}
	return nil
}

// holds reports whether what let c in still does, for an answer that takes long: the
// tokens are those of then, and a session has not ended. Of other tokens nobody
// knows whether that of c is among them: it is not kept to look it up.
func (s *Server) holds(c *call) bool {
	tokens := s.Tokens()
	if !tokens.Equal(c.tokens) {
		return false
	}
	if tokens == nil || s.token(c) != "" {
		return true
	}
	role, _ := s.sessions.role(c.r, tokens)
	return role.May(c.route.need.role())
}

// token returns the token that c has in its header. Forward-auth has the client's own
// Authorization, which is none of ours.
func (s *Server) token(c *call) string {
	if t := c.r.Header["X-Lately-Token"]; len(t) > 0 && t[0] != "" {
		return t[0]
	}
	const scheme = "Bearer "
	if t := c.r.Header["Authorization"]; len(t) > 0 && !c.route.foreign && len(t[0]) > len(scheme) && strings.EqualFold(t[0][:len(scheme)], scheme) {
		return t[0][len(scheme):]
	}
	return ""
}

// check makes c who has that token, or returns an error.
func (s *Server) check(c *call, tokens *access.Tokens, token string) error {
	role, name, ok := tokens.Role(token)
	if !ok {
		s.Unauthorized.Add(1)
		s.Rejected.Add(c.peer())
		return errToken
	}
	c.role, c.who = role, name
	return nil
}

// login answers a token with a session, for browsers.
func login(c *call) error {
	var req api.LoginRequest
	if err := c.decode(&req); err != nil {
		return err
	}
	tokens := c.s.Tokens()
	if tokens == nil {
		return c.answer(api.Session{Role: c.role.String()})
	}
	if err := c.s.check(c, tokens, req.Token); err != nil {
		return err
	}
	c.setCookie(c.s.sessions.begin(access.Identity{Role: c.role, Name: c.who}, tokens), int(sessionLife/time.Second))
	c.audit("login")
	return c.answer(api.Session{Role: c.role.String()})
}

// logout ends the session of the cookie, if there is one.
func logout(c *call) error {
	if err := c.decode(&api.Nothing{}); err != nil {
		return err
	}
	if cookie, err := c.r.Cookie(cookieName); err == nil {
		c.s.sessions.end(cookie.Value, c.s.Tokens())
	}
	c.setCookie("", -1)
	return c.answer(api.Nothing{})
}

func (c *call) setCookie(id string, age int) {
	http.SetCookie(c.w, &http.Cookie{
		Name: cookieName, Value: id, Path: "/", MaxAge: age,
		HttpOnly: true, SameSite: http.SameSiteStrictMode, Secure: c.r.TLS != nil,
	})
}
