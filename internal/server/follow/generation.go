package follow

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/lately-go/lately/internal/file/decompress"
	"github.com/lately-go/lately/internal/file/fileperm"
)

// blockSize is the size of a read, in bytes: more than the longest line.
const blockSize = 512 << 10

// A generation is one of the files that have had the name of a log, open for reading.
type generation struct {
	place
	file     *os.File
	info     fs.FileInfo
	unpacked *bufio.Reader // of a compressed file
	head     []byte        // up to maxHead bytes that identify the file: see identify
	parser   *lineParser

	ended   bool      // nobody writes to it: at its end it is finished
	grew    time.Time // when it was last seen to grow
	size    int64     // at the last look
	written time.Time // at the last look: the time of the file
	waiting int64     // the size at which there was no whole line
}

// openGeneration opens a file at its beginning.
func openGeneration(path string, now time.Time) (*generation, error) {
	file, info, err := fileperm.Open(path)
	if err != nil {
		return nil, err
	}
	g := &generation{file: file, info: info, grew: now}
	g.Path = path
	if real, err := filepath.EvalSymlinks(path); err == nil {
		g.Path = real
	}
	g.Dev, g.Ino = fileID(info)
	g.Modified = info.ModTime()
	if isCompressed(path) {
		r, err := decompress.NewReader(file)
		if err != nil {
			return nil, errors.Join(fmt.Errorf("%s: %w", path, err), file.Close())
		}
		g.unpacked, g.ended = bufio.NewReaderSize(r, blockSize), true
	}
	g.identify()
	return g, nil
}

// identify makes the first line the identity of the file, until more of it is read. An older copy
// has the same first line. A file without a whole line needs no identity.
func (g *generation) identify() {
	first := g.firstBytes()
	g.head = bytes.Clone(first[:bytes.IndexByte(first, '\n')+1])
}

// firstBytes returns the first bytes of the file, decompressed, before any is read.
func (g *generation) firstBytes() []byte {
	if g.unpacked == nil {
		return readHead(g.file, maxHead)
	}
	head, _ := g.unpacked.Peek(maxHead)
	return head
}

// continueAt makes g, which has not been read, go on where p ended. The file is like p.
func (g *generation) continueAt(p *place) error {
	if p.Offset == 0 && p.Begun == 0 {
		return nil
	}
	g.head = bytes.Clone(g.firstBytes()[:p.HeadLen])
	g.Offset, g.linePlace = p.Offset, p.linePlace
	if g.unpacked == nil {
		return nil
	}
	_, err := io.CopyN(io.Discard, g.unpacked, p.Offset)
	if errors.Is(err, io.EOF) { // a copy that is shorter than what was read of its original
		return nil
	}
	return err
}

// errReplaced is the error of a file whose contents have changed since they were read.
var errReplaced = errors.New("the file has other contents")

// peek returns the next bytes of the file, up to a block.
func (g *generation) peek(buf []byte) ([]byte, error) {
	if g.unpacked != nil {
		data, err := g.unpacked.Peek(blockSize)
		if errors.Is(err, io.EOF) {
			err = nil
		}
		return data, err
	}
	n, err := g.file.ReadAt(buf, g.Offset)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	// Only after reading: the file may have been truncated meanwhile.
	if g.replaced(n) {
		return nil, errReplaced
	}
	return buf[:n], nil
}

// replaced reports whether the contents that were read, or the n bytes after them, have
// changed.
func (g *generation) replaced(n int) bool {
	info, err := g.file.Stat()
	if err != nil {
		return false // the next read has the error
	}
	if info.Size() < g.Offset+int64(n) || !startsWith(g.file, g.head) {
		return true
	}
	g.look(info)
	return false
}

// look notes the size and the time of the file. The time is kept until the first read: newer
// rotated files are earlier names of this one.
func (g *generation) look(info fs.FileInfo) {
	g.size, g.written = info.Size(), info.ModTime()
	if g.Offset > 0 {
		g.Modified = g.written
	}
}

// filled reports whether the file, which was empty at the last read, was written to since. What it has
// now may be less than that: it may have been copied and truncated.
func (g *generation) filled() bool {
	if len(g.head) > 0 {
		return false
	}
	info, err := g.file.Stat()
	return err == nil && !info.ModTime().Equal(g.Modified)
}

// hasData reports whether there may be a whole line to read.
func (g *generation) hasData() bool {
	if g.unpacked != nil {
		return true // until it has ended, and is removed
	}
	if info, err := g.file.Stat(); err == nil {
		g.look(info)
	}
	return g.size > g.Offset && g.size != g.waiting || g.ended
}

// advance goes past the first n bytes of what peek returned.
func (g *generation) advance(data []byte) error {
	if known := int64(len(g.head)) - g.Offset; known >= 0 && known < int64(len(data)) {
		more := data[known:]
		g.head = append(g.head, more[:min(maxHead-len(g.head), len(more))]...)
	}
	g.Offset += int64(len(data))
	if g.unpacked == nil {
		g.Modified = g.written // as of peek
		return nil
	}
	_, err := g.unpacked.Discard(len(data))
	return err
}

// restart makes g read its file from the beginning.
func (g *generation) restart() {
	g.Offset, g.waiting = 0, 0
	g.linePlace, g.parser = linePlace{}, nil
	g.identify()
}

// close closes the file of g, which keeps its place.
func (g *generation) close() {
	g.place = g.saved()
	g.file.Close() // read only
	g.file = nil
}

// saved returns the place of g as it is saved.
func (g *generation) saved() place {
	p := g.place
	if g.file == nil {
		return p
	}
	p.HeadLen, p.HeadHash = len(g.head), hashOf(g.head)
	return p
}
