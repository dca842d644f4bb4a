package listen

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"unicode"

	"github.com/lately-go/lately/internal/file/fileperm"
)

// A Socket says who may connect to a Unix socket. The zero Socket is for the user of this
// process only.
type Socket struct {
	// Mode is the permissions: clients need the one to write. 0 means 0600.
	Mode fs.FileMode

	// Owner is USER, USER:GROUP or :GROUP, by name or number; "" leaves both as they are.
	// Only root may name another user, or a group that it is not in.
	Owner string
}

// SocketPath returns the path of an address such as unix:/run/lately/http.sock, and whether it
// is an address of this form. Use [ValidSocketPath] for what a user has written.
func SocketPath(address string) (path string, ok bool) {
	path, ok = strings.CutPrefix(address, "unix:")
	if !ok {
		return "", false
	}
	return filepath.Clean(path), true
}

// maxSocketPath is the longest path that the system takes, in bytes.
const maxSocketPath = len(syscall.RawSockaddrUnix{}.Path) - 1

// ValidSocketPath returns what is wrong with the path of a Unix socket, or nil.
func ValidSocketPath(path string) error {
	switch {
	case !filepath.IsAbs(path) || strings.ContainsFunc(path, unicode.IsSpace):
		return fmt.Errorf("%q: must be an absolute path without blanks, such as unix:/run/lately/http.sock", path)
	case len(path) > maxSocketPath:
		return fmt.Errorf("%s: too long for a Unix socket: %d bytes (max %d)", path, len(path), maxSocketPath)
	}
	return nil
}

// Open listens on an address: HOST:PORT, or unix:PATH with the permissions of s. A socket at PATH that nobody
// listens on, as a killed process leaves it, is replaced; any other file, and a socket in use, are errors. A
// Unix socket is removed when the listener is closed. The error names the setting.
func (s Socket) Open(setting, address string) (net.Listener, error) {
	path, unix := SocketPath(address)
	if !unix {
		l, err := net.Listen("tcp", address)
		if err != nil {
			return nil, fmt.Errorf("%s: %w: choose another address with --%s, or --%s off", setting, err, setting, setting)
		}
		return l, nil
	}
	l, err := s.open(path)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", setting, err)
	}
	return l, nil
}

func (s Socket) open(path string) (net.Listener, error) {
	dir := filepath.Dir(path)
	if err := safeDir(dir); err != nil {
		return nil, err
	}
	defer lockDir(dir)()
	if err := removeStale(path); err != nil {
		return nil, err
	}
	// Control is called before the socket has a name, so that nobody can connect before the
	// permissions are set.
	config := net.ListenConfig{Control: func(_, _ string, c syscall.RawConn) error { return c.Control(makePrivate) }}
	l, err := config.Listen(context.Background(), "unix", path)
	if err != nil {
		return nil, err
	}
	u := l.(*net.UnixListener)
	u.SetUnlinkOnClose(false) // see socket.Close
	listener := &socket{UnixListener: u, path: path}
	if listener.file, err = os.Lstat(path); err == nil {
		err = s.permit(path)
	}
	if err != nil {
		return nil, errors.Join(err, listener.Close())
	}
	return listener, nil
}

// safeDir returns an error for a directory in which other users could replace a socket by a file.
func safeDir(dir string) error {
	info, err := os.Stat(dir)
	if err != nil {
		return fmt.Errorf("%w: create the directory first", err)
	}
	if info.Mode()&fs.ModeSticky == 0 && fileperm.Strangers(info)&fileperm.Write != 0 {
		return fmt.Errorf("%s: other users can replace files in this directory (mode %04o): must be one that they cannot write to; run: chmod o-w %s", dir, info.Mode().Perm(), dir)
	}
	return nil
}

// removeStale removes the socket at path if no process listens on it.
func removeStale(path string) error {
	info, err := os.Lstat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	} else if err != nil {
		return err
	}
	if info.Mode().Type() != fs.ModeSocket {
		return fmt.Errorf("%s: it exists and is not a socket: must be a path without a file", path)
	}
	conn, err := net.Dial("unix", path)
	switch {
	case err == nil:
		conn.Close()
		return &net.OpError{Op: "listen", Net: "unix", Addr: &net.UnixAddr{Name: path}, Err: errors.New("another process listens there: stop it, or choose another path")}
	case errors.Is(err, fs.ErrNotExist): // it was removed meanwhile
		return nil
	case !errors.Is(err, syscall.ECONNREFUSED):
		return fmt.Errorf("%s: a socket of another process: %w: choose another path, or remove it if nothing uses it", path, err)
	}
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("a socket that nobody listens on cannot be removed: %w", err)
	}
	return nil
}

// permit lets those connect to the socket at path whom s names. The mode comes last: until then only
// the user of this process can connect.
func (s Socket) permit(path string) error {
	if s.Owner != "" {
		uid, gid, err := ownerIDs(s.Owner)
		if err != nil {
			return err
		}
		if err := os.Lchown(path, uid, gid); err != nil {
			return fmt.Errorf("socket-owner: %s: %w: must be the user of this process and one of its groups, unless it is root", s.Owner, err)
		}
	}
	if s.Mode == 0 {
		s.Mode = 0o600
	}
	return os.Chmod(path, s.Mode)
}

// ownerIDs returns the numbers of USER, USER:GROUP or :GROUP, -1 for one that is not given.
func ownerIDs(owner string) (uid, gid int, err error) {
	uid, gid = -1, -1
	name, group, _ := strings.Cut(owner, ":")
	if name != "" {
		if uid, err = strconv.Atoi(name); err != nil {
			u, err := user.Lookup(name)
			if err != nil {
				return -1, -1, fmt.Errorf("socket-owner: %s: there is no user %s", owner, name)
			}
			uid, _ = strconv.Atoi(u.Uid)
		}
	}
	if group != "" {
		if gid, err = strconv.Atoi(group); err != nil {
			g, err := user.LookupGroup(group)
			if err != nil {
				return -1, -1, fmt.Errorf("socket-owner: %s: there is no group %s", owner, group)
			}
			gid, _ = strconv.Atoi(g.Gid)
		}
	}
	return uid, gid, nil
}

// A socket is a listener on a Unix socket.
type socket struct {
	*net.UnixListener
	path string
	file fs.FileInfo
	once sync.Once
}

// Close removes the socket, unless another file has its path by now, and closes the listener.
// While the file exists somebody listens on it, so no other process replaces it meanwhile.
func (l *socket) Close() error {
	l.once.Do(func() {
		if now, err := os.Lstat(l.path); err == nil && os.SameFile(now, l.file) {
			_ = os.Remove(l.path) // what is left is replaced at the next start
		}
	})
	return l.UnixListener.Close()
}
