package accesslogtest

import (
	"fmt"
	"math/rand/v2"
	"strconv"
	"time"
)

// Paths of the shop that are planted.
const (
	loginPath  = "/login"
	searchPath = "/search"
	hotPath    = "/product/4711"
)

const (
	products     = 420 // /product/1001 and up
	firstProduct = 1001
	shopURL      = "https://shop.example"
)

// The names below are invented.
var (
	agents = []string{
		"Mozilla/5.0 (Desktop; Linux) Wren/14.2",
		"Mozilla/5.0 (Desktop; Windows) Wren/14.2",
		"Mozilla/5.0 (Phone; Finch OS 9) Wren/14.1 Mobile",
		"Mozilla/5.0 (Phone; Finch OS 8) Siskin/7.0 Mobile",
		"Mozilla/5.0 (Tablet; Finch OS 9) Siskin/7.1",
		"Mozilla/5.0 (Desktop; Windows) Dunlin/101.0",
		"Mozilla/5.0 (Desktop; Linux) Dunlin/99.0",
		"PloverApp/3.4 (Phone)",
	}
	categories  = []string{"/tea", "/coffee", "/cups", "/kettles", "/books", "/gifts", "/sale", "/new"}
	words       = []string{"oolong", "teapot", "green+tea", "filter", "mug", "kettle", "gift+card", "matcha", "grinder", "milk+frother"}
	missing     = []string{"/favicon.ico", "/wp-login.php", "/.env", "/old/catalogue.html", "/apple-touch-icon.png"}
	staticFiles = []asset{{"/static/app.css", 18233}, {"/static/app.js", 74410}, {"/static/logo.svg", 2204}, {"/static/text.woff2", 31876}}
)

type asset struct {
	path string
	size int
}

// A visit is the state of one session: a client that walks through the shop.
type visit struct {
	client  string
	agent   string
	referer string
	left    int  // pages still to come
	warm    bool // has the static files
}

// A shop generates the lines of a web server. Times are in milliseconds since start.
type shop struct {
	rng      *rand.Rand
	clients  []string
	popular  zipf // ranks of clients
	wanted   zipf // ranks of products
	products []asset
	images   []asset
	searches []string
	visits   []visit
	crawled  int
	stamp    []byte // scratch

	// The session that is being written.
	b       *batch
	at, end int64
	left    int // lines that it may still have
}

func newShop(c Config) *shop {
	rng := rand.New(rand.NewPCG(c.Seed, streamShop))
	s := &shop{
		rng:     rng,
		clients: addresses(c.clients(), rng),
		popular: newZipf(c.clients(), 12),
		wanted:  newZipf(products, 3),
	}
	for _, i := range rng.Perm(products) {
		id := strconv.Itoa(firstProduct + i)
		s.products = append(s.products, asset{"/product/" + id, 8000 + rng.IntN(9000)})
		s.images = append(s.images, asset{"/img/" + id + ".jpg", 20_000 + rng.IntN(180_000)})
	}
	for _, w := range words {
		for page := range 5 {
			s.searches = append(s.searches, searchPath+"?q="+w+"&page="+strconv.Itoa(page+1))
		}
	}
	return s
}

// session adds what one client does from time at on: from 1 to most lines, the last
// before end. busy is the number of sessions that are going on.
func (s *shop) session(b *batch, at, end int64, most, busy int) {
	s.b, s.at, s.end, s.left = b, at, end, most
	s.visits = s.visits[:min(busy, len(s.visits))]
	i := s.rng.IntN(busy)
	if i >= len(s.visits) {
		i = len(s.visits)
		s.visits = append(s.visits, visit{})
	}
	v := &s.visits[i]
	if v.left == 0 {
		*v = s.newVisit()
	}
	v.left--
	s.page(v)
}

func (s *shop) newVisit() visit {
	i := s.popular.draw(s.rng)
	v := visit{
		client:  s.clients[i],
		agent:   agents[i*7%len(agents)],
		referer: "-",
		left:    1 + s.rng.IntN(4) + s.rng.IntN(9),
		warm:    s.rng.IntN(3) == 0,
	}
	if s.rng.IntN(2) == 0 {
		v.referer = "https://search.example/"
	}
	return v
}

// page writes one page of a visit and the files that come with it.
func (s *shop) page(v *visit) {
	switch n := s.rng.IntN(100); {
	case n < 12:
		s.show(v, asset{"/", 11_420})
	case n < 34:
		s.show(v, asset{categories[s.rng.IntN(len(categories))], 9100 + s.rng.IntN(700)})
	case n < 76:
		i := s.wanted.draw(s.rng)
		s.show(v, s.products[i])
		s.get(v, s.images[i], s.cached(v))
	case n < 84:
		s.show(v, asset{s.searches[s.rng.IntN(len(s.searches))], 5200 + s.rng.IntN(4000)})
	case n < 88:
		s.login(v)
	case n < 94:
		s.send(v, "POST", asset{"/cart/add", 0}, 302)
		s.show(v, asset{"/cart", 4350 + s.rng.IntN(900)})
	case n < 96:
		s.show(v, asset{"/checkout", 6120})
		s.send(v, "POST", asset{"/checkout", 512}, 200)
	default:
		s.get(v, asset{missing[s.rng.IntN(len(missing))], 178}, 404)
	}
}

// login is a person's: at most one wrong password before the right one.
func (s *shop) login(v *visit) {
	s.show(v, asset{loginPath, 2810})
	if s.rng.IntN(8) == 0 {
		s.send(v, "POST", asset{loginPath, 312}, 401)
	}
	s.send(v, "POST", asset{loginPath, 0}, 302)
	s.show(v, asset{"/account", 5033})
}

// show writes a page that a person looks at and, the first time, the static
// files it needs.
func (s *shop) show(v *visit, page asset) {
	status := 200
	if s.rng.IntN(2500) == 0 {
		status, page.size = 500, 170
	}
	s.get(v, page, status)
	v.referer = shopURL + page.path
	if v.warm {
		return
	}
	v.warm = true
	for _, file := range staticFiles {
		s.get(v, file, 200)
	}
}

// cached returns the status with which a file is answered.
func (s *shop) cached(v *visit) int {
	if v.warm && s.rng.IntN(5) == 0 {
		return 304
	}
	return 200
}

func (s *shop) get(v *visit, a asset, status int) { s.send(v, "GET", a, status) }

// send writes one line of the session, if there may be one more, and moves on by some
// milliseconds.
func (s *shop) send(v *visit, method string, a asset, status int) {
	if s.left == 0 {
		return
	}
	s.left--
	if status == 304 {
		a.size = 0
	}
	s.write(s.b, s.at, request{v.client, method, a.path, v.referer, v.agent, status, a.size})
	s.at = min(s.at+5+s.rng.Int64N(60), s.end-1)
}

func (s *shop) crawl(b *batch, at int64) {
	a := asset{"/robots.txt", 96}
	if i := s.crawled % 500; i > 0 {
		a = s.products[i%products]
	}
	s.crawled++
	s.write(b, at, request{crawlerClient, "GET", a.path, "-", "Mozilla/5.0 (compatible; Heron/3.2; +https://heron.example/bot)", 200, a.size})
}

func (s *shop) flood(b *batch, at int64) {
	s.write(b, at, request{floodClient, "POST", loginPath, "-", "okapi-http/2.1", 401, 312})
}

func (s *shop) crowd(b *batch, at int64, client string) {
	target := s.searches[s.rng.IntN(len(s.searches))]
	s.write(b, at, request{client, "GET", target, "-", agents[1], 200, 5200 + s.rng.IntN(4000)})
}

func (s *shop) hot(b *batch, at int64) {
	i := s.rng.IntN(len(s.clients))
	s.write(b, at, request{s.clients[i], "GET", hotPath, "https://news.example/today", agents[i*7%len(agents)], 200, 9741})
}

// A request is one line. With an empty method, target takes the place of the whole
// request line, already escaped.
type request struct {
	client, method, target, referer, agent string
	status, size                           int
}

// write adds a line. Nothing that a shop generates needs escaping.
func (s *shop) write(b *batch, at int64, r request) {
	from := len(b.buf)
	s.stamp = start.Add(time.Duration(at)*time.Millisecond).AppendFormat(s.stamp[:0], "02/Jan/2006:15:04:05 -0700")
	line := r.target
	if r.method != "" {
		line = r.method + " " + r.target + " HTTP/1.1"
	}
	b.buf = fmt.Appendf(b.buf, `%s - - [%s] "%s" %d %d "%s" "%s"`, r.client, s.stamp, line, r.status, r.size, r.referer, r.agent)
	b.end(at, from, r.client, true)
}

// dirty writes what every real log has: bytes of a TLS handshake sent to a
// plain port, an empty line, and a line that was cut when the disk was full.
func (s *shop) dirty(b *batch, at int64, kind int) {
	switch kind {
	case 0:
		s.write(b, at, request{probeClient, "", `\x16\x03\x01\x02\x00\x01\x00`, "-", "-", 400, 150})
	case 1:
		b.end(at, len(b.buf), probeClient, false)
	default:
		s.write(b, at, request{probeClient, "GET", "/", "-", "-", 200, 11_420})
		b.cut()
	}
}
