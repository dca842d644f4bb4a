package httpapi

import (
	"fmt"
	"slices"
	"strings"
)

// A need is who may ask for a route. The zero need is none: a route has to say.
type need uint8

const (
	unsaid need = iota
	everyone
	toRead
	toCheck
	toAdmin
)

// What a request has for a body.
type bodyKind uint8

const (
	noBody   bodyKind = iota
	jsonBody          // has to be there, even if empty, and be called JSON
	yamlBody
)

// A route is one thing that can be asked over HTTP.
type route struct {
	method string // "*" is any
	path   string // with "{name}" for what may be any text, slashes included
	need   need
	body   bodyKind
	most   int // bytes of the body; 0 means maxBody
	handle func(*call) error

	// foreign says that a request may come from pages of other origins, as
	// that of a proxy on behalf of a browser does.
	foreign bool

	// For the OpenAPI document.
	id, summary string
	query       []parameter // nothing else may be in a query
	in          any         // a value of the type of the body
	out         any         // a value of the type of the answer; nil for none
	status      int         // of a good answer; 0 is 200
	media       string      // of a good answer; "" is JSON
	fails       []int       // statuses of problems, next to those that follow from the above
}

// mostBody returns how many bytes the body may have.
func (t *route) mostBody() int {
	if t.most == 0 {
		return maxBody
	}
	return t.most
}

// A parameter is one part of a query.
type parameter struct {
	name, about string
	example     string
	many        bool // it may be there more than once
	needed      bool
}

// A router finds routes. It does not change.
type router struct {
	routes []route
	exact  map[string]*pathRoutes
	open   []*pathRoutes // with {name}
}

// A pathRoutes is the routes of one path, by method.
type pathRoutes struct {
	before, after string // of what may be any text, if there is such a part
	routes        []*route
}

// newRouter returns the router of these routes. A route that does not say who may
// ask for it, that changes something without a body, or that is there twice, is an
// error.
func newRouter(routes []route) (*router, error) {
	r := &router{routes: routes, exact: make(map[string]*pathRoutes)}
	for i := range routes {
		t := &routes[i]
		switch {
		case t.need <= unsaid || t.need > toAdmin:
			return nil, fmt.Errorf("route %s %s does not say who may ask for it; allowed are everyone, toRead, toCheck and toAdmin", t.method, t.path)
		case t.handle == nil || t.id == "" || t.summary == "":
			return nil, fmt.Errorf("route %s %s has no handler, id or summary; every route has them", t.method, t.path)
		case t.method == "POST" && t.body == noBody:
			return nil, fmt.Errorf("route %s %s takes no body; a POST has one, which says that it comes from no form", t.method, t.path)
		case t.need == everyone && t.body != noBody && t.most == 0:
			return nil, fmt.Errorf("route %s %s is for everyone and does not bound its body", t.method, t.path)
		case (t.method == "GET" || t.method == "*") && t.body != noBody:
			return nil, fmt.Errorf("route %s %s takes a body; allowed for a POST only", t.method, t.path)
		}
		p := r.place(t.path)
		for _, other := range p.routes {
			if other.method == t.method || other.method == "*" || t.method == "*" {
				return nil, fmt.Errorf("route %s %s is there twice", t.method, t.path)
			}
		}
		p.routes = append(p.routes, t)
	}
	return r, nil
}

// place returns the path of that pattern, and makes it if need be.
func (r *router) place(pattern string) *pathRoutes {
	before, after, open := strings.Cut(pattern, "{name}")
	if !open {
		if r.exact[pattern] == nil {
			r.exact[pattern] = new(pathRoutes)
		}
		return r.exact[pattern]
	}
	for _, p := range r.open {
		if p.before == before && p.after == after {
			return p
		}
	}
	p := &pathRoutes{before: before, after: after}
	r.open = append(r.open, p)
	return p
}

// find returns the route of a request, and what {name} stands for in it. If there is
// none of that method, it returns the methods that there are.
func (r *router) find(method, text string) (t *route, name string, allowed []string) {
	p := r.exact[text]
	if p == nil {
		if p = r.within(text); p == nil {
			return nil, "", nil
		}
		name = text[len(p.before) : len(text)-len(p.after)]
	}
	for _, t := range p.routes {
		if t.method == method || t.method == "*" || t.method == "GET" && method == "HEAD" {
			return t, name, nil
		}
	}
	for _, t := range p.routes {
		allowed = append(allowed, t.method)
		if t.method == "GET" {
			allowed = append(allowed, "HEAD")
		}
	}
	slices.Sort(allowed)
	return nil, "", allowed
}

// within returns the path with a part that may be any text, which text is of.
func (r *router) within(text string) *pathRoutes {
	for _, p := range r.open {
		if len(text) > len(p.before)+len(p.after) && strings.HasPrefix(text, p.before) && strings.HasSuffix(text, p.after) {
			return p
		}
	}
	return nil
}
