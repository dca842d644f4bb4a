package console_test

import (
	"testing"
)

// testHot looks at hot keys and their rule, and has keys removed, ignored, counted again and added.
func testHot(t *testing.T, b *browser) {
	f := newFakeAPI(t)
	p := b.open(t, f.URL, 1440, 900)
	p.wait(isLive)
	p.to("hot")
	first := `[...document.querySelectorAll('.hotline')].find((e) => e.textContent.includes('/product/4711'))`
	p.wait(first + `.textContent.includes('12,155/s')`)
	for _, text := range []string{"24,310 to 24,960 in 2 s", "118 processes", "hot for", "left"} {
		p.wait(first + `.textContent.includes(` + quoted(text) + `)`)
	}
	p.wait(`[...document.querySelectorAll('.saved dd')].map((e) => e.textContent).join() === '96 %,91 %,82 %'`)
	p.wait(`document.querySelectorAll('.hotrules rect.slot').length > 40 && document.querySelector('.hotrules .tag').textContent === '4 hot'`)
	p.wait(`document.querySelectorAll('.hotline').length === 4 && document.querySelectorAll('.hotline button').length === 6`) // none for what is always hot
	p.picture("hot")

	p.click(".hotline:nth-child(1) .acts button:first-child")
	p.wait(`document.querySelector('dialog .subject').textContent === '/product/4711'`)
	p.click("dialog .danger")
	p.wait(`!document.querySelector('dialog') && document.querySelectorAll('.hotline').length === 3`)
	equal(t, f.posted("hot/remove"), `{"rule":"product","key":["/product/4711"]}`)

	p.click(".hotline:nth-child(2) .acts button:last-child")
	p.wait(`document.querySelector('dialog h2').textContent === 'Ignore this key?'`)
	p.click("dialog .danger")
	p.wait(`document.querySelectorAll('.hotline').length === 2 && document.querySelectorAll('.ignoredline').length === 1`)
	p.click(".ignoredline button")
	p.wait(`document.querySelectorAll('.ignoredline').length === 0`)
	equal(t, f.posted("hot/ignore"), `{"rule":"product","key":["/product/by-hand"]}`, `{"rule":"product","key":["/product/by-hand"],"off":true}`)

	p.click(".addhot")
	p.wait(`document.querySelector('dialog h2').textContent === 'Add a hot key'`)
	p.js(`document.querySelector('dialog input[name=value]').value = '/product/9'; document.querySelector('dialog input[name=for]').value = '10 years'`, nil)
	p.click("dialog .danger")
	p.wait(`document.querySelector('dialog .said').textContent.includes('A duration is')`)
	p.js(`document.querySelector('dialog input[name=for]').value = '1h30m'`, nil)
	p.click("dialog .danger")
	p.wait(`!document.querySelector('dialog') && document.querySelectorAll('.hotline').length === 3 && document.querySelector('.hotline .tags').textContent === 'productby hand'`)
	equal(t, f.posted("hot"), `{"rule":"product","key":["/product/9"],"ttl_ms":5400000}`)

	// The page of a key has its day, and who uses it.
	p.js(`location.hash = '#/key?field=path&value=%2Fproduct%2Falways'`, nil)
	p.wait(`document.querySelector('.keyhot').checkVisibility() && document.querySelectorAll('.keyhot .processes li').length === 3`)
	p.wait(`document.querySelector('.hotstate .badge').textContent === 'hot' && document.querySelector('.hotstate').textContent.includes('24,310 to 24,960 in 2 s')`)
	p.wait(`document.querySelector('.processes li').textContent === 'shop-web-4021 1,020/s' && document.querySelectorAll('.keyhot rect.slot').length > 80`)
	p.picture("key-hot")
	p.js(`location.hash = '#/key?field=client&value=192.0.2.1'`, nil)
	p.wait(`document.querySelector('.keyhot') && !document.querySelector('.keyhot').checkVisibility()`)

	p.size(390, 844)
	p.to("hot")
	p.picture("hot-phone")
	p.accessible("hot, 390 wide")
	p.js(`location.hash = '#/key?field=path&value=%2Fproduct%2Falways'`, nil)
	p.wait(`document.querySelectorAll('.keyhot .processes li').length === 3`)
	p.js(`document.querySelector('.keyhot').scrollIntoView()`, nil)
	p.picture("key-hot-phone")
	p.accessible("key, 390 wide")
	p.clean()
}
