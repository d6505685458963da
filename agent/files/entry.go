// Package files reads, writes and lists the guest's files as one of its users.
package files

import (
	"errors"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"space/agent/account"
)

// Type is that of an entry.
type Type int

// The types.
const (
	TypeUnknown Type = iota
	TypeFile
	TypeDirectory
	TypeSymlink
	TypeFIFO
	TypeSocket
	TypeCharDevice
	TypeBlockDevice
)

// Entry describes one name of the file system.
type Entry struct {
	Path, Name        string
	Type              Type
	Size              uint64
	Mode              uint32
	UID, GID          uint32
	ModifiedUnixNanos int64
	Inode             uint64
	SymlinkTarget     string
	ResolvedPath      string // of a link that leads somewhere
	TargetType        Type
	TargetMode        uint32
	Xattrs            map[string][]byte
}

const (
	maxXattrBytes = 64 << 10 // of one entry, names and values together
	xattrUser     = "user."
)

func typeOf(mode uint32) Type {
	switch mode & unix.S_IFMT {
	case unix.S_IFREG:
		return TypeFile
	case unix.S_IFDIR:
		return TypeDirectory
	case unix.S_IFLNK:
		return TypeSymlink
	case unix.S_IFIFO:
		return TypeFIFO
	case unix.S_IFSOCK:
		return TypeSocket
	case unix.S_IFCHR:
		return TypeCharDevice
	case unix.S_IFBLK:
		return TypeBlockDevice
	default:
		return TypeUnknown
	}
}

func describe(path string, stat *unix.Stat_t) *Entry {
	return &Entry{
		Path: path, Name: filepath.Base(path), Type: typeOf(stat.Mode), Size: uint64(stat.Size),
		Mode: stat.Mode & 0o7777, UID: stat.Uid, GID: stat.Gid, Inode: stat.Ino,
		ModifiedUnixNanos: stat.Mtim.Nano(),
	}
}

// look describes what a path itself is, a link as a link.
func look(path string, xattrs bool) (*Entry, error) {
	var stat unix.Stat_t
	if err := retry(func() error { return unix.Lstat(path, &stat) }); err != nil {
		return nil, err
	}
	entry := describe(path, &stat)
	if entry.Type == TypeSymlink {
		entry.SymlinkTarget, _ = os.Readlink(path)
		var target unix.Stat_t
		if retry(func() error { return unix.Stat(path, &target) }) == nil {
			entry.TargetType, entry.TargetMode = typeOf(target.Mode), target.Mode&0o7777
			entry.ResolvedPath, _ = filepath.EvalSymlinks(path)
		}
	}
	if xattrs {
		entry.Xattrs = readXattrs(attributesAt(path))
	}
	return entry, nil
}

// readXattrs gives those below "user.", as many as fit; a file system without any has none.
// attributes reads those of one file: by path, where links are not followed, or by descriptor.
type attributes struct {
	list func(names []byte) (int, error)
	get  func(name string, value []byte) (int, error)
}

func attributesAt(path string) attributes {
	return attributes{
		list: func(names []byte) (int, error) { return unix.Llistxattr(path, names) },
		get:  func(name string, value []byte) (int, error) { return unix.Lgetxattr(path, name, value) },
	}
}

func attributesOf(fd int) attributes {
	return attributes{
		list: func(names []byte) (int, error) { return unix.Flistxattr(fd, names) },
		get:  func(name string, value []byte) (int, error) { return unix.Fgetxattr(fd, name, value) },
	}
}

func readXattrs(of attributes) map[string][]byte {
	list := make([]byte, maxXattrBytes)
	n, err := of.list(list)
	if err != nil || n == 0 {
		return nil
	}
	found := map[string][]byte{}
	left := maxXattrBytes
	value := make([]byte, maxXattrBytes)
	for _, name := range strings.Split(strings.TrimSuffix(string(list[:n]), "\x00"), "\x00") {
		short, ours := strings.CutPrefix(name, xattrUser)
		if !ours {
			continue
		}
		size, err := of.get(name, value)
		if err != nil {
			continue
		}
		if left -= size + len(name); left < 0 {
			break
		}
		found[short] = append([]byte(nil), value[:size]...)
	}
	return found
}

func replaceXattrs(fd int, prefix string, wanted map[string][]byte) error {
	for name := range readXattrs(attributesOf(fd)) {
		if _, kept := wanted[strings.TrimPrefix(name, prefix)]; strings.HasPrefix(name, prefix) && !kept {
			if err := unix.Fremovexattr(fd, xattrUser+name); err != nil && !errors.Is(err, unix.ENODATA) {
				return err
			}
		}
	}
	for name, value := range wanted {
		if err := unix.Fsetxattr(fd, xattrUser+prefix+name, value, 0); err != nil {
			return err
		}
	}
	return nil
}

func retry(call func() error) error {
	for {
		if err := call(); !errors.Is(err, unix.EINTR) {
			return err
		}
	}
}

// Stat describes a path.
func Stat(who account.Account, path string) (entry *Entry, err error) {
	err = who.Do(func() error {
		entry, err = look(path, true)
		return err
	})
	return entry, err
}
