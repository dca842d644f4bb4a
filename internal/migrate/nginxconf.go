package migrate

import "strings"

// A directive is one of nginx: a name with arguments, and the directives of its block.
type directive struct {
	place
	words []string // the name first
	block []*directive
	in    *directive // whose block it is in; nil at the top
}

// readNginx returns the directives of a configuration. What is not closed at the end of the
// file is closed there.
func (b *builder) readNginx(src Source) []*directive {
	b.files = append(b.files, src.Name)
	root := &directive{}
	block, depth := root, 0
	var now *directive
	scan := nginxScanner{text: string(src.Data), line: 1}
	for word, mark := scan.next(); mark != 0; word, mark = scan.next() {
		at := place{src.Name, scan.began}
		if now == nil && mark != '}' {
			now = &directive{place: at, in: block}
		}
		switch mark {
		case nginxWord:
			now.words = append(now.words, word)
		case ';', '{':
			if len(now.words) == 0 {
				b.note(at, "a directive without a name")
			}
			block.block = append(block.block, now)
			if mark == '{' && depth == maxDepth {
				b.note(at, "more than %d blocks within each other: the rest of the file is not read", maxDepth)
				return root.block
			}
			if mark == '{' {
				block = now
				depth++
			}
			now = nil
		case '}':
			if now != nil || depth == 0 {
				b.note(at, "unexpected }: a ; or a { is missing before it")
			}
			if now = nil; depth > 0 {
				block, depth = block.in, depth-1
			}
		}
	}
	if now != nil || depth > 0 {
		b.note(place{src.Name, scan.line}, "the file ends within a directive or a block")
	}
	return root.block
}

// maxDepth is how many blocks may be within each other.
const maxDepth = 64

// nginxWord stands for a word where others are marks.
const nginxWord = 'w'

// A nginxScanner cuts a configuration into words and marks.
type nginxScanner struct {
	text  string
	line  int // of what follows
	began int // of what was returned last
}

// next returns the next word and nginxWord, or a mark; at the end, that is 0.
func (s *nginxScanner) next() (word string, mark byte) {
	s.skip()
	s.began = s.line
	if s.text == "" {
		return "", 0
	}
	if mark := s.text[0]; mark == ';' || mark == '{' || mark == '}' {
		s.text = s.text[1:]
		return "", mark
	}
	quote := byte(0)
	if s.text[0] == '"' || s.text[0] == '\'' {
		quote = s.text[0]
		s.text = s.text[1:]
	}
	var text strings.Builder
	for i := 0; i < len(s.text); i++ {
		c := s.text[i]
		switch {
		case c == '\\' && i+1 < len(s.text):
			// Other escapes are for regular expressions.
			if next := s.text[i+1]; next != quote && next != '\\' && next != ' ' {
				text.WriteByte(c)
			}
			i++
			c = s.text[i]
		case quote != 0 && c == quote:
			s.text = s.text[i+1:]
			return text.String(), nginxWord
		case quote == 0 && c == '$' && i+1 < len(s.text) && s.text[i+1] == '{':
			text.WriteByte(c)
			i++
			c = '{'
			if end := strings.IndexByte(s.text[i:], '}'); end > 0 && !strings.ContainsAny(s.text[i:i+end], " \t\r\n;") {
				text.WriteString(s.text[i : i+end])
				i += end
				c = '}'
			}
		case quote == 0 && strings.IndexByte(" \t\r\n;{", c) >= 0:
			s.text = s.text[i:]
			return text.String(), nginxWord
		}
		if c == '\n' {
			s.line++
		}
		text.WriteByte(c)
	}
	s.text = ""
	return text.String(), nginxWord
}

// skip skips blanks and comments.
func (s *nginxScanner) skip() {
	for s.text != "" {
		switch s.text[0] {
		case '\n':
			s.line++
		case ' ', '\t', '\r':
		case '#':
			if end := strings.IndexByte(s.text, '\n'); end >= 0 {
				s.text = s.text[end:]
			} else {
				s.text = ""
			}
			continue
		default:
			return
		}
		s.text = s.text[1:]
	}
}
