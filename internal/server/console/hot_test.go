package console_test

import (
	"testing"

	"github.com/lately-go/lately/internal/test/browsertest"
)

// testHot looks at hot keys and their rule, and has keys removed, ignored, counted again and added.
func testHot(t *testing.T, b *browsertest.Browser) {
	f := newFakeAPI(t)
	p := b.Open(t, f.URL, 1440, 900)
	p.Wait(isLive)
	to(p, "hot")
	first := `[...document.querySelectorAll('.hotline')].find((e) => e.textContent.includes('/product/4711'))`
	p.Wait(first + `.textContent.includes('12,155/s')`)
	for _, text := range []string{"24,310 to 24,960 in 2 s", "118 processes", "hot for", "left"} {
		p.Wait(first + `.textContent.includes(` + quoted(text) + `)`)
	}
	p.Wait(`[...document.querySelectorAll('.saved dd')].map((e) => e.textContent).join() === '96 %,91 %,82 %'`)
	p.Wait(`document.querySelector('.hotrules .scale path').getAttribute('d').length > 100 && document.querySelectorAll('.hotrules .grid text').length > 2 && document.querySelector('.hotrules .tag').textContent === '4 hot'`)
	p.Wait(`document.querySelectorAll('.hotline').length === 4 && document.querySelectorAll('.hotline button').length === 6`) // none for keys that are always hot
	p.Picture("hot")

	p.Click(".hotline:nth-child(1) .acts button:first-child")
	p.Wait(`document.querySelector('dialog .subject').textContent === '/product/4711'`)
	p.Click("dialog .danger")
	p.Wait(`!document.querySelector('dialog') && document.querySelectorAll('.hotline').length === 3`)
	equal(t, f.posted("hot/remove"), `{"rule":"product","key":["/product/4711"]}`)

	p.Click(".hotline:nth-child(2) .acts button:last-child")
	p.Wait(`document.querySelector('dialog h2').textContent === 'Ignore this key?'`)
	p.Click("dialog .danger")
	p.Wait(`document.querySelectorAll('.hotline').length === 2 && document.querySelectorAll('.ignoredline').length === 1`)
	p.Click(".ignoredline button")
	p.Wait(`document.querySelectorAll('.ignoredline').length === 0`)
	equal(t, f.posted("hot/ignore"), `{"rule":"product","key":["/product/by-hand"]}`, `{"rule":"product","key":["/product/by-hand"],"off":true}`)

	p.Click(".addhot")
	p.Wait(`document.querySelector('dialog h2').textContent === 'Add a hot key'`)
	p.JS(`document.querySelector('dialog input[name=value]').value = '/product/9'; document.querySelector('dialog input[name=for]').value = '10 years'`, nil)
	p.Click("dialog .danger")
	p.Wait(`document.querySelector('dialog .said').textContent.includes('A duration is')`)
	p.JS(`document.querySelector('dialog input[name=for]').value = '1h30m'`, nil)
	p.Click("dialog .danger")
	p.Wait(`!document.querySelector('dialog') && document.querySelectorAll('.hotline').length === 3 && document.querySelector('.hotline .tags').textContent === 'productby hand'`)
	equal(t, f.posted("hot"), `{"rule":"product","key":["/product/9"],"ttl_ms":5400000}`)

	// The page of a key has its day, and its users.
	p.JS(`location.hash = '#/key?field=path&value=%2Fproduct%2Falways'`, nil)
	p.Wait(`document.querySelector('.keyhot').checkVisibility() && document.querySelectorAll('.keyhot .processes li').length === 3`)
	p.Wait(`document.querySelector('.hotstate .badge').textContent === 'hot' && document.querySelector('.hotstate').textContent.includes('24,310 to 24,960 in 2 s')`)
	p.Wait(`document.querySelector('.processes li').textContent === 'shop-web-4021 1,020/s' && document.querySelectorAll('.keyhot rect.slot').length > 80`)
	p.Picture("key-hot")
	p.JS(`location.hash = '#/key?field=client&value=192.0.2.1'`, nil)
	p.Wait(`document.querySelector('.keyhot') && !document.querySelector('.keyhot').checkVisibility()`)

	p.Size(390, 844)
	to(p, "hot")
	p.Picture("hot-phone")
	p.Accessible("hot, 390 wide")
	p.JS(`location.hash = '#/key?field=path&value=%2Fproduct%2Falways'`, nil)
	p.Wait(`document.querySelectorAll('.keyhot .processes li').length === 3`)
	p.JS(`document.querySelector('.keyhot').scrollIntoView()`, nil)
	p.Picture("key-hot-phone")
	p.Accessible("key, 390 wide")
	p.Clean()
}
