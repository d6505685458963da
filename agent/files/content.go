package files

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"strconv"

	"golang.org/x/sys/unix"
	"google.golang.org/grpc/codes"

	"space/agent/account"
	"space/agent/fault"
)

// TemporaryPrefix begins the names of files that an atomic write makes beside its target. Watches
// don't report them.
const TemporaryPrefix = ".space-part-"

// Reading is an open file and what it is.
type Reading struct {
	Entry *Entry
	file  *os.File
	left  int64 // -1 = to the end
}

// Read opens a regular file, links followed. Other things are refused before they are opened: a FIFO
// would wait for a writer, and opening a device may do something.
func Read(who account.Account, path string, offset, length uint64) (reading *Reading, err error) {
	if offset > 1<<62 || length > 1<<62 {
		return nil, fault.Invalid("offset and length are at most 2^62")
	}
	err = who.Do(func() error {
		file, stat, err := openRegular(path, unix.O_RDONLY)
		if err != nil {
			return err
		}
		if offset > 0 {
			if _, err := file.Seek(int64(offset), io.SeekStart); err != nil {
				file.Close()
				return err
			}
		}
		entry := describe(path, stat)
		entry.Xattrs = readXattrs(attributesOf(int(file.Fd())))
		reading = &Reading{Entry: entry, file: file, left: -1}
		if length > 0 {
			reading.left = int64(length)
		}
		return nil
	})
	return reading, fault.Path(err, path)
}

// openRegular opens a path only to see what it is, and then exactly that for real.
func openRegular(path string, flags int) (*os.File, *unix.Stat_t, error) {
	var stat unix.Stat_t
	seen, err := unix.Open(path, unix.O_PATH|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, nil, err
	}
	defer unix.Close(seen)
	if err := unix.Fstat(seen, &stat); err != nil {
		return nil, nil, err
	}
	switch kind := typeOf(stat.Mode); kind {
	case TypeFile:
	case TypeDirectory:
		return nil, nil, unix.EISDIR
	default:
		return nil, nil, fault.New(codes.FailedPrecondition, "not_a_file", "%q is %s", path, kind)
	}
	again := "/proc/self/fd/" + strconv.Itoa(seen)
	fd, err := unix.Open(again, flags|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, nil, err
	}
	return os.NewFile(uintptr(fd), path), &stat, nil
}

func (t Type) String() string {
	switch t {
	case TypeFile:
		return "a file"
	case TypeDirectory:
		return "a directory"
	case TypeSymlink:
		return "a link"
	case TypeFIFO:
		return "a FIFO"
	case TypeSocket:
		return "a socket"
	case TypeCharDevice, TypeBlockDevice:
		return "a device"
	default:
		return "something unknown"
	}
}

// Next reads the next bytes; io.EOF at the true end, which the size of a /proc file doesn't tell.
func (r *Reading) Next(into []byte) (int, error) {
	if r.left == 0 {
		return 0, io.EOF
	}
	if r.left > 0 && int64(len(into)) > r.left {
		into = into[:r.left]
	}
	n, err := unix.Read(int(r.file.Fd()), into)
	for errors.Is(err, unix.EINTR) {
		n, err = unix.Read(int(r.file.Fd()), into)
	}
	if err != nil {
		return 0, fault.Path(err, r.Entry.Path)
	}
	if n == 0 {
		return 0, io.EOF
	}
	if r.left > 0 {
		r.left -= int64(n)
	}
	return n, nil
}

// Close ends the reading.
func (r *Reading) Close() { r.file.Close() }

// Target says what to write, and how.
type Target struct {
	Path          string
	Mode          uint32
	Parents       bool
	Atomic        bool
	ReplaceXattrs bool
	XattrPrefix   string
	Xattrs        map[string][]byte
	Offset        uint64
}

// Writing is a file that is being written.
//
// The order of its steps is part of the contract: a watcher sees a new file as CREATE, CHMOD, WRITE and
// one that was there as CHMOD, WRITE.
type Writing struct {
	who     account.Account
	target  Target
	file    *os.File
	made    string // to be removed when it isn't finished
	at      int64
	shrinks bool
}

// Write opens the target.
func Write(who account.Account, target Target) (w *Writing, err error) {
	if target.Atomic && target.Offset > 0 {
		return nil, fault.Invalid("an atomic write begins at 0")
	}
	if target.Offset > 1<<62 {
		return nil, fault.Invalid("offset is at most 2^62")
	}
	w = &Writing{who: who, target: target, at: int64(target.Offset)}
	err = who.Do(func() error {
		if target.Parents {
			if err := makeParents(target.Path); err != nil {
				return err
			}
		}
		return w.open()
	})
	if err != nil {
		w.Abort()
		return nil, w.fault(err)
	}
	return w, nil
}

func (w *Writing) open() error {
	path := w.target.Path
	existing, stat, err := openRegular(path, unix.O_WRONLY)
	switch {
	case err == nil:
	case errors.Is(err, unix.ENOENT):
		stat = nil
	default:
		return err
	}
	mode := w.target.Mode & 0o7777
	if mode == 0 {
		mode = 0o644
		if stat != nil {
			mode = stat.Mode & 0o7777
		}
	}
	switch {
	case w.target.Atomic:
		if existing != nil {
			existing.Close()
			// Through a link the file it leads to is replaced, not the link.
			if path, err = filepath.EvalSymlinks(path); err != nil {
				return err
			}
			w.target.Path = path
		}
		temporary, err := os.CreateTemp(filepath.Dir(path), TemporaryPrefix)
		if err != nil {
			return err
		}
		w.file, w.made = temporary, temporary.Name()
		if stat != nil && w.who.UID == 0 {
			_ = temporary.Chown(int(stat.Uid), int(stat.Gid))
		}
	case stat != nil:
		w.file = existing
		w.shrinks = w.target.Offset == 0 && stat.Size > 0
	default:
		fd, err := unix.Open(path, unix.O_WRONLY|unix.O_CREAT|unix.O_EXCL|unix.O_CLOEXEC, mode)
		if errors.Is(err, unix.EEXIST) { // a link that leads nowhere yet, or made meanwhile
			fd, err = unix.Open(path, unix.O_WRONLY|unix.O_CREAT|unix.O_NONBLOCK|unix.O_CLOEXEC, mode)
		}
		if err != nil {
			return err
		}
		w.file, w.made = os.NewFile(uintptr(fd), path), path
	}
	fd := int(w.file.Fd())
	if err := unix.Fchmod(fd, mode); err != nil && !errors.Is(err, unix.EPERM) {
		return err // another user's file that this one may write keeps its mode
	} else if err != nil && w.target.Mode != 0 {
		return err
	}
	if w.target.ReplaceXattrs {
		return replaceXattrs(fd, w.target.XattrPrefix, w.target.Xattrs)
	}
	return nil
}

// Append writes the next bytes.
func (w *Writing) Append(data []byte) error {
	for len(data) > 0 {
		n, err := unix.Pwrite(int(w.file.Fd()), data, w.at)
		if errors.Is(err, unix.EINTR) {
			continue
		}
		if err != nil {
			return w.fault(err)
		}
		w.at += int64(n)
		data = data[n:]
	}
	return nil
}

// Finish makes the file what was written, and describes it.
func (w *Writing) Finish() (entry *Entry, err error) {
	var stat unix.Stat_t
	fd := int(w.file.Fd())
	if err = unix.Fstat(fd, &stat); err == nil && w.shrinks && stat.Size > w.at {
		err = unix.Ftruncate(fd, w.at)
	}
	if err == nil {
		err = w.who.Do(func() error {
			if w.target.Atomic {
				if err := unix.Rename(w.made, w.target.Path); err != nil {
					return err
				}
			}
			w.made = ""
			entry, err = look(w.target.Path, true)
			return err
		})
	}
	if closed := w.file.Close(); err == nil {
		err = closed
	}
	return entry, w.fault(err)
}

// Abort gives up. A file that was new is removed: a part of it must not look like the whole.
func (w *Writing) Abort() {
	if w.file == nil {
		return
	}
	w.file.Close()
	if w.made != "" {
		_ = w.who.Do(func() error { return unix.Unlink(w.made) })
	}
}

func (w *Writing) fault(err error) error {
	return writeFault(err, w.target.Path)
}

// writeFault gives a full disk its figures.
func writeFault(err error, path string) error {
	if errors.Is(err, unix.ENOSPC) || errors.Is(err, unix.EDQUOT) {
		var disk unix.Statfs_t
		if unix.Statfs(filepath.Dir(path), &disk) == nil {
			block := uint64(disk.Bsize)
			return fault.New(codes.ResourceExhausted, "disk_full",
				"%q: no space left: %d of %d bytes and %d of %d files are free",
				path, disk.Bavail*block, disk.Blocks*block, disk.Ffree, disk.Files)
		}
	}
	return fault.Path(err, path)
}
