package accesslog

import (
	"bytes"

	"github.com/lately-go/lately/match"
)

// A columnWant is the column of the value of a want.
type columnWant struct{ column, want int }

// delimited reads a line of CSV or TSV up to the last column of the spec. It does not
// read the rest of the line.
func (p *Parser) delimited(line []byte, ev *match.Event) bool {
	p.scratch = p.scratch[:0]
	var value []byte
	next, column := 0, 0 // the cell to read, as index and as column
	for _, c := range p.spec.columns {
		for ; column <= c.column; column++ {
			if next > len(line) {
				return false // the line has fewer columns
			}
			if value, next = p.cell(line, next); next < 0 {
				return false
			}
		}
		p.values[c.want] = value
	}
	return p.fill(ev)
}

// cell returns the cell that begins at i and the index after the separator
// that ends it, or len(line)+1 if the line ends it; -1 if its quotes are wrong.
func (p *Parser) cell(line []byte, i int) (value []byte, next int) {
	if p.spec.quotes && i < len(line) && line[i] == '"' {
		return p.quotedCell(line, i+1)
	}
	end := bytes.IndexByte(line[i:], p.spec.separator)
	if end < 0 {
		end = len(line) - i
	}
	end += i
	return line[i:end:end], end + 1
}

// quotedCell is cell from after the quote.
func (p *Parser) quotedCell(line []byte, i int) (value []byte, next int) {
	value, i = p.quotedValue(line, i)
	if i < 0 || i < len(line) && line[i] != p.spec.separator {
		return nil, -1
	}
	return value, i + 1
}

// quotedValue returns the value in quotes from after the first one, and the index after
// the last, -1 if there is none. Two quotes stand for one in the value (RFC 4180).
func (p *Parser) quotedValue(line []byte, i int) (value []byte, next int) {
	from := len(p.scratch)
	for {
		hop := bytes.IndexByte(line[i:], '"')
		if hop < 0 {
			return nil, -1
		}
		part := line[i : i+hop : i+hop]
		i += hop + 1
		if i == len(line) || line[i] != '"' {
			if len(p.scratch) == from {
				return part, i
			}
			p.scratch = append(p.scratch, part...)
			return p.scratch[from:len(p.scratch):len(p.scratch)], i
		}
		p.scratch = append(append(p.scratch, part...), '"')
		i++
	}
}
