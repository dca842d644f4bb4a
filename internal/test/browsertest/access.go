package browsertest

import (
	"fmt"
	"strings"
)

// inspect is a function of the page that returns what keeps people from using it: contrast too low, controls without a
// name, headings and landmarks out of order, identifiers given twice, content that is wider than the page. Contrast follows
// WCAG 2.2: 4.5 to 1, and 3 to 1 for large text.
const inspect = `(() => {
	const found = [];
	const canvas = new OffscreenCanvas(1, 1).getContext('2d', {willReadFrequently: true});
	const rgba = (css) => {
		canvas.clearRect(0, 0, 1, 1);
		canvas.fillStyle = css;
		canvas.fillRect(0, 0, 1, 1);
		const [r, g, b, a] = canvas.getImageData(0, 0, 1, 1).data;
		return [r, g, b, a / 255];
	};
	const over = (top, under) => [0, 1, 2].map((i) => top[i] * top[3] + under[i] * (1 - top[3])).concat(1);
	const behind = (e) => {
		const layers = [];
		for (; e; e = e.parentElement) {
			const c = rgba(getComputedStyle(e).backgroundColor);
			if (c[3] > 0) layers.push(c);
			if (c[3] === 1) break;
		}
		return layers.reverse().reduce((under, top) => over(top, under), [255, 255, 255, 1]);
	};
	const light = ([r, g, b]) => [0.2126 * r, 0.7152 * g, 0.0722 * b].reduce((sum, part, i) => {
		const c = [r, g, b][i] / 255;
		return sum + [0.2126, 0.7152, 0.0722][i] * (c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4);
	}, 0);
	const ratio = (a, b) => (Math.max(light(a), light(b)) + 0.05) / (Math.min(light(a), light(b)) + 0.05);
	const visible = (e) => e.checkVisibility({opacityProperty: true, visibilityProperty: true}) && e.getClientRects().length > 0;
	const name = (e) => e.tagName.toLowerCase() + (e.id && '#' + e.id) + (e.className.baseVal ?? e.className ? '.' + String(e.className.baseVal ?? e.className).trim().replaceAll(' ', '.') : '');
	const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
	for (let t; (t = walker.nextNode());) {
		const e = t.parentElement;
		if (!t.data.trim() || !visible(e) || e.closest(':disabled, .hide, option')) continue;
		const s = getComputedStyle(e);
		const back = behind(e);
		const colour = over(rgba(e instanceof SVGElement ? s.fill : s.color), back);
		const size = parseFloat(s.fontSize);
		const large = size >= 24 || (size >= 18.66 && s.fontWeight >= 700);
		const is = ratio(colour, back);
		if (is < (large ? 3 : 4.5)) found.push('contrast ' + is.toFixed(2) + ' of ' + name(e) + ' ' + JSON.stringify(t.data.trim().slice(0, 30)));
	}
	for (const e of document.querySelectorAll('a, button, input, select, textarea, [tabindex="0"], [role=meter]')) {
		if (!visible(e)) continue;
		const text = e.getAttribute('aria-label') || e.labels?.[0]?.textContent || (e.matches('a, button') && e.textContent);
		if (!String(text || '').trim()) found.push('no name: ' + name(e));
		const r = e.getBoundingClientRect();
		if (e.matches('button, select, input') && (r.width < 24 || r.height < 24)) found.push('too small to hit: ' + name(e) + ' ' + r.width.toFixed(0) + 'x' + r.height.toFixed(0));
	}
	const ids = [...document.querySelectorAll('[id]')].map((e) => e.id);
	for (const id of ids.filter((id, i) => ids.indexOf(id) !== i)) found.push('id twice: ' + id);
	for (const e of document.querySelectorAll('[aria-labelledby], [aria-describedby]')) {
		for (const id of [e.getAttribute('aria-labelledby'), e.getAttribute('aria-describedby')].filter(Boolean)) if (!document.getElementById(id)) found.push('no such id: ' + id);
	}
	for (const [what, n] of [['main', 1], ['body > header', 1], ['h1', 1]]) {
		const is = [...document.querySelectorAll(what)].filter(visible).length;
		if (is !== n) found.push(what + ': ' + is + ' of them');
	}
	let level = 1;
	for (const e of document.querySelectorAll('main :is(h1, h2, h3, h4)')) {
		if (!visible(e)) continue;
		if (e.tagName[1] > level + 1) found.push('heading skips a level: ' + e.textContent);
		level = Number(e.tagName[1]);
	}
	if (!document.documentElement.lang) found.push('no language');
	if (document.documentElement.scrollWidth > innerWidth) {
		found.push('the page is ' + document.documentElement.scrollWidth + ' wide, the window ' + innerWidth);
	}
	return found;
})()`

// Accessible fails the test for all findings of inspect, and for all elements that can have the focus without a name for
// assistive technology.
func (p *Tab) Accessible(where string) {
	p.t.Helper()
	for _, f := range p.Inspected() {
		p.t.Errorf("%s: %s", where, f)
	}
}

// Inspected returns what Accessible reports.
func (p *Tab) Inspected() (found []string) {
	p.t.Helper()
	p.JS(`Promise.all(document.getAnimations().filter((a) => !(a.effect?.getComputedTiming().endTime > 2000)).map((a) => a.finished.catch(() => {}))).then(() => 1)`, nil)
	p.JS(inspect, &found)
	var tree struct {
		Nodes []struct {
			Ignored    bool
			Role, Name struct{ Value any }
			Properties []struct {
				Name  string
				Value struct{ Value any }
			}
		}
	}
	p.must(p.b.call(p.session, "Accessibility.getFullAXTree", nil, &tree))
	for _, n := range tree.Nodes {
		role, name := fmt.Sprint(n.Role.Value), strings.TrimSpace(fmt.Sprint(n.Name.Value))
		if n.Ignored || name != "" && n.Name.Value != nil || role == "RootWebArea" || role == "main" || role == "heading" {
			continue
		}
		for _, prop := range n.Properties {
			if prop.Name == "focusable" && prop.Value.Value == true {
				found = append(found, "the browser tells no name of a "+role)
			}
		}
	}
	return found
}
