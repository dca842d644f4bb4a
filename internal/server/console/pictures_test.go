package console_test

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/lately-go/lately/internal/server"
	"github.com/lately-go/lately/internal/test/browsertest"
)

// testPictures writes a picture of each whole page: full, empty, and with the traffic of the demo, on a desktop and on a
// phone, light and dark. It needs LATELY_SCREENSHOTS.
func testPictures(t *testing.T, b *browsertest.Browser) {
	if os.Getenv("LATELY_SCREENSHOTS") == "" {
		t.Skip("LATELY_SCREENSHOTS names no folder")
	}
	full := newFakeAPI(t)
	picturesOf(t, b.Open(t, full.URL, 1280, 800), "full")
	_, url := runServer(t, server.Config{HTTP: "127.0.0.1:0", RESP: "127.0.0.1:0"})
	picturesOf(t, b.Open(t, url, 1280, 800), "empty")
	_, url = runServer(t, server.Config{Demo: true, RESP: "127.0.0.1:0", HTTP: "127.0.0.1:0"})
	p := b.Open(t, url, 1280, 800)
	time.Sleep(20 * time.Second) // until it has banned a client
	picturesOf(t, p, "demo")
	login := newFakeAPI(t)
	login.set(func() { login.token = "secret" })
	p = b.Open(t, login.URL, 1280, 800)
	p.Wait(`document.querySelector('main').className === 'view-login'`)
	eachLook(p, func(look string) { p.Picture("console-login-" + look) })
}

// picturesOf writes the pictures of the pages and dialogs of one server.
func picturesOf(t *testing.T, p *browsertest.Tab, state string) {
	t.Helper()
	p.Wait(isLive)
	eachLook(p, func(look string) {
		for _, r := range routes {
			hash := r.hash
			if state == "demo" {
				hash = strings.Replace(hash, "203.0.113.77", "198.51.100.10", 1) // its first crawler
			}
			p.JS(`location.hash = '`+hash+`'`, nil)
			p.Wait(`document.querySelector('main').className === 'view-` + r.name + `'`)
			wholePicture(p, fmt.Sprintf("console-%s-%s-%s", state, r.name, look))
		}
		if state == "empty" {
			return
		}
		for name, open := range map[string]string{"ban": ".head .primary", "unban": "tr.ban .col-end button, tr.ban button", "unban-many": ".head button:not(.primary)"} {
			p.JS(`location.hash = '#/bans'`, nil)
			p.Wait(`document.querySelectorAll('tr.ban').length`)
			p.JS(fmt.Sprintf(`document.querySelector(%q).click()`, open), nil)
			p.Picture(fmt.Sprintf("console-%s-dialog-%s-%s", state, name, look))
			p.Keys("Escape")
		}
		p.JS(`location.hash = '#/rules'`, nil)
		p.Wait(`document.querySelectorAll('.rulecard').length`)
		p.JS(`document.querySelector('.filepanel button.admin').click()`, nil)
		wholePicture(p, fmt.Sprintf("console-%s-try-%s", state, look))
	})
}

// eachLook calls f for each size and theme.
func eachLook(p *browsertest.Tab, f func(look string)) {
	for _, width := range []int{1280, 390} {
		for _, theme := range []string{"light", "dark"} {
			p.Size(width, 800)
			p.Media("prefers-color-scheme: "+theme, "prefers-reduced-motion: reduce")
			f(fmt.Sprintf("%d-%s", width, theme))
		}
	}
}

// wholePicture writes a picture of the page down to its end.
func wholePicture(p *browsertest.Tab, name string) {
	width := 1280
	if strings.Contains(name, "-390-") {
		width = 390
	}
	p.JS(`new Promise((done) => setTimeout(done, 500))`, nil)
	var height int
	p.JS(`document.documentElement.scrollHeight`, &height)
	p.Size(width, max(800, height))
	p.Picture(name)
	p.Size(width, 800)
}
