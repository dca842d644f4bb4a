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
	for {
		at := place{src.Name, scan.line}
		word, kind := scan.next()
		if kind == nginxEnd {
			break
		}
		at.line = scan.began
		if now == nil && kind == nginxWord {
			now = &directive{place: at, in: block}
		}
		switch kind {
		case nginxWord:
			now.words = append(now.words, word)
		case nginxSemicolon, nginxOpen:
			if now == nil {
				b.note(at, "a directive without a name")
				now = &directive{place: at, in: block}
			}
			block.block = append(block.block, now)
			if kind == nginxOpen && depth == maxDepth {
				b.note(at, "more than %d blocks within each other: the rest of the file is not read", maxDepth)
				return root.block
			}
			if kind == nginxOpen {
				block = now
				depth++
			}
			now = nil
		case nginxClose:
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

type nginxKind int

const (
	nginxEnd nginxKind = iota
	nginxWord
	nginxSemicolon
	nginxOpen
	nginxClose
)

// A nginxScanner cuts a configuration into words and marks.
type nginxScanner struct {
	text  string
	line  int // of what follows
	began int // of what was returned last
}

func (s *nginxScanner) next() (string, nginxKind) {
	s.skip()
	s.began = s.line
	if s.text == "" {
		return "", nginxEnd
	}
	marks := map[byte]nginxKind{';': nginxSemicolon, '{': nginxOpen, '}': nginxClose}
	if kind, ok := marks[s.text[0]]; ok {
		s.text = s.text[1:]
		return "", kind
	}
	quote := byte(0)
	if s.text[0] == '"' || s.text[0] == '\'' {
		quote = s.text[0]
		s.text = s.text[1:]
	}
	var word strings.Builder
	for i := 0; i < len(s.text); i++ {
		c := s.text[i]
		switch {
		case c == '\\' && i+1 < len(s.text):
			// Other escapes are for regular expressions.
			if next := s.text[i+1]; next != quote && next != '\\' && next != ' ' {
				word.WriteByte(c)
			}
			i++
			c = s.text[i]
		case quote != 0 && c == quote:
			s.text = s.text[i+1:]
			return word.String(), nginxWord
		case quote == 0 && c == '$' && i+1 < len(s.text) && s.text[i+1] == '{':
			word.WriteByte(c)
			i++
			c = '{'
			if end := strings.IndexByte(s.text[i:], '}'); end > 0 && !strings.ContainsAny(s.text[i:i+end], " \t\r\n;") {
				word.WriteString(s.text[i : i+end])
				i += end
				c = '}'
			}
		case quote == 0 && strings.IndexByte(" \t\r\n;{", c) >= 0:
			s.text = s.text[i:]
			return word.String(), nginxWord
		}
		if c == '\n' {
			s.line++
		}
		word.WriteByte(c)
	}
	s.text = ""
	return word.String(), nginxWord
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
