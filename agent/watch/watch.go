// Package watch reports changes below a directory, from inotify.
package watch

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
	"google.golang.org/grpc/codes"

	"space/agent/account"
	"space/agent/fault"
	"space/agent/files"
)

// Kind says what happened.
type Kind int

// The kinds.
const (
	Create Kind = iota
	Write
	Remove
	Rename
	Chmod
	Overflow
	// Reached says that all changes made before a call of Mark were given.
	Reached
)

// Event is one change; Name is relative to the watched directory, "" itself. Mark is the number of the
// last call of Mark that a Reached answers.
type Event struct {
	Kind Kind
	Name string
	Mark uint64
}

const (
	maxDirectories = 65536 // of one watch
	maxScanned     = 1 << 18
	bufferSize     = 64 << 10

	mask = unix.IN_CREATE | unix.IN_MODIFY | unix.IN_ATTRIB | unix.IN_DELETE | unix.IN_MOVED_FROM |
		unix.IN_MOVED_TO | unix.IN_DELETE_SELF | unix.IN_MOVE_SELF | unix.IN_ONLYDIR | unix.IN_EXCL_UNLINK
)

// Watcher is an armed watch.
type Watcher struct {
	who       account.Account
	root      string
	recursive bool
	file      *os.File
	raw       syscall.RawConn
	fd        int

	names map[int32]string // by watch descriptor, relative to the root
	ids   map[string]int32
	// Names that a scan of a new directory reported, whose own events may still be in the queue.
	scanned map[string]bool
	moved   *move
	out     []Event
	gone    bool

	asked   atomic.Uint64 // calls of Mark
	reached uint64
}

// move is a directory that left its place; where to tells the event that follows, if it stayed in the tree.
type move struct {
	cookie uint32
	name   string
}

// networkKinds are file systems whose other users' changes inotify never hears of.
var networkKinds = map[int64]string{
	0x6969: "nfs", 0xff534d42: "cifs", 0xfe534d42: "smb2", 0x517b: "smb", 0x65735546: "fuse",
}

// Open arms a watch: every change from now on is reported.
func Open(who account.Account, root string, recursive, allowNetwork bool) (*Watcher, error) {
	var disk unix.Statfs_t
	if err := who.Do(func() error { return unix.Statfs(root, &disk) }); err != nil {
		return nil, fault.Path(err, root)
	}
	if kind, network := networkKinds[int64(disk.Type)]; network && !allowNetwork {
		return nil, fault.New(codes.InvalidArgument, "network_mount", "%q is on %s: changes made elsewhere are not seen", root, kind)
	}
	fd, err := unix.InotifyInit1(unix.IN_CLOEXEC | unix.IN_NONBLOCK)
	if err != nil {
		return nil, fault.New(codes.ResourceExhausted, "too_many_watches", "inotify: %v", err)
	}
	w := &Watcher{
		who: who, root: root, recursive: recursive, fd: fd, file: os.NewFile(uintptr(fd), "inotify"),
		names: map[int32]string{}, ids: map[string]int32{}, scanned: map[string]bool{},
	}
	if w.raw, err = w.file.SyscallConn(); err == nil {
		err = who.Do(func() error { return w.cover("", false) })
	}
	if err != nil {
		w.Close()
		return nil, fault.Path(err, root)
	}
	return w, nil
}

// Close ends the watch, and a Next that waits.
func (w *Watcher) Close() { w.file.Close() }

// Mark makes Next give a Reached with at least this number once it gave every change made before now.
// Any goroutine may call it.
func (w *Watcher) Mark() uint64 {
	n := w.asked.Add(1)
	// A Next that waits for the kernel is to look again. It counts the calls after it has taken the
	// deadline back, so none is lost.
	_ = w.file.SetReadDeadline(time.Unix(1, 0))
	return n
}

// cover watches a directory and, when recursive, those below. With tell it reports what is there: it was
// made before the directory was watched.
func (w *Watcher) cover(name string, tell bool) error {
	if err := w.add(name); err != nil {
		return err
	}
	if !w.recursive {
		return nil
	}
	entries, err := os.ReadDir(filepath.Join(w.root, name))
	if err != nil && len(entries) == 0 {
		return nil
	}
	for _, entry := range entries {
		child := filepath.Join(name, entry.Name())
		if tell && !strings.HasPrefix(entry.Name(), files.TemporaryPrefix) {
			w.emit(Create, child)
			if len(w.scanned) < maxScanned {
				w.scanned[child] = true
			}
		}
		if entry.IsDir() {
			if err := w.cover(child, tell); err != nil && fatal(err) {
				return err
			}
		}
	}
	return nil
}

// fatal tells a limit from a directory that went away or is closed to the user.
func fatal(err error) bool {
	return errors.Is(err, unix.ENOSPC) || errors.Is(err, unix.ENOMEM)
}

func (w *Watcher) add(name string) error {
	if len(w.ids) >= maxDirectories {
		return fault.New(codes.ResourceExhausted, "too_many_watches", "a watch covers at most %d directories", maxDirectories)
	}
	flags := uint32(mask)
	if name != "" {
		flags |= unix.IN_DONT_FOLLOW
	}
	id, err := unix.InotifyAddWatch(w.fd, filepath.Join(w.root, name), flags)
	if errors.Is(err, unix.ENOSPC) {
		return fault.New(codes.ResourceExhausted, "too_many_watches", "the guest's limit of watched directories is reached")
	}
	if err != nil {
		return err
	}
	if old, known := w.names[int32(id)]; known && w.ids[old] == int32(id) {
		delete(w.ids, old)
	}
	w.names[int32(id)] = name
	w.ids[name] = int32(id)
	return nil
}

// Next blocks until something changed and gives all that is known, in order. After the root is gone it
// gives an error.
func (w *Watcher) Next() ([]Event, error) {
	buf := make([]byte, bufferSize)
	for {
		if w.gone {
			return nil, fault.New(codes.NotFound, "watch_root_gone", "%q was removed or moved away", w.root)
		}
		n := 0
		var err error
		asked := w.asked.Load()
		failed := w.raw.Read(func(fd uintptr) bool {
			n, err = unix.Read(int(fd), buf)
			if errors.Is(err, unix.EAGAIN) {
				clear(w.scanned) // all that the scans could have met in the queue is done
				return asked > w.reached
			}
			return !errors.Is(err, unix.EINTR)
		})
		if errors.Is(failed, os.ErrDeadlineExceeded) {
			if failed = w.file.SetReadDeadline(time.Time{}); failed == nil {
				continue
			}
		}
		if failed != nil {
			return nil, failed
		}
		if errors.Is(err, unix.EAGAIN) {
			w.reached = asked
			return []Event{{Kind: Reached, Mark: asked}}, nil
		}
		if err != nil {
			return nil, fault.Internal("inotify: %v", err)
		}
		w.out = w.out[:0]
		if err := w.who.Do(func() error { return w.take(buf[:n]) }); err != nil {
			return nil, err
		}
		if len(w.out) > 0 {
			return w.out, nil
		}
	}
}

func (w *Watcher) take(data []byte) error {
	for len(data) >= unix.SizeofInotifyEvent {
		raw := (*unix.InotifyEvent)(unsafe.Pointer(&data[0]))
		end := unix.SizeofInotifyEvent + int(raw.Len)
		name := strings.TrimRight(string(data[unix.SizeofInotifyEvent:end]), "\x00")
		event := *raw
		data = data[end:]
		if err := w.event(event, name); err != nil {
			return err
		}
	}
	w.movedAway() // the two halves of a move are queued together
	return nil
}

func (w *Watcher) event(raw unix.InotifyEvent, name string) error {
	if raw.Mask&unix.IN_Q_OVERFLOW != 0 {
		w.out = append(w.out, Event{Kind: Overflow})
		w.scanned = map[string]bool{}
		return w.cover("", false) // directories may have been missed as well
	}
	dir, known := w.names[raw.Wd]
	if raw.Mask&unix.IN_IGNORED != 0 {
		delete(w.names, raw.Wd)
		if known && w.ids[dir] == raw.Wd {
			delete(w.ids, dir)
		}
		return nil
	}
	if !known {
		return nil
	}
	if name == "" {
		return w.self(raw.Mask, dir)
	}
	child := filepath.Join(dir, name)
	isDir := raw.Mask&unix.IN_ISDIR != 0
	if w.moved != nil && (raw.Mask&unix.IN_MOVED_TO == 0 || raw.Cookie != w.moved.cookie) {
		w.movedAway()
	}
	hidden := strings.HasPrefix(name, files.TemporaryPrefix)
	switch {
	case raw.Mask&unix.IN_CREATE != 0:
		if hidden {
			return nil
		}
		if w.scanned[child] {
			delete(w.scanned, child)
		} else {
			w.emit(Create, child)
		}
		if isDir && w.recursive {
			return w.later(w.cover(child, true))
		}
	case raw.Mask&unix.IN_MOVED_TO != 0:
		if !w.scanned[child] {
			w.emit(Create, child)
		}
		delete(w.scanned, child)
		if isDir && w.recursive {
			if w.moved != nil {
				w.renameTree(w.moved.name, child)
				w.moved = nil
			}
			return w.later(w.cover(child, false))
		}
	case raw.Mask&unix.IN_MOVED_FROM != 0:
		delete(w.scanned, child)
		if !hidden {
			w.emit(Rename, child)
		}
		if isDir && w.recursive {
			w.moved = &move{cookie: raw.Cookie, name: child}
		}
	case raw.Mask&unix.IN_DELETE != 0:
		delete(w.scanned, child)
		if !hidden {
			w.emit(Remove, child)
		}
	case raw.Mask&unix.IN_MODIFY != 0 && !hidden:
		w.emit(Write, child)
	case raw.Mask&unix.IN_ATTRIB != 0 && !hidden:
		w.emit(Chmod, child)
	}
	return nil
}

func (w *Watcher) self(what uint32, dir string) error {
	if dir != "" {
		return nil // the parent's watch reports it by name
	}
	switch {
	case what&unix.IN_ATTRIB != 0:
		var stat unix.Stat_t
		if unix.Lstat(w.root, &stat) == nil {
			w.emit(Chmod, "")
		}
	case what&unix.IN_DELETE_SELF != 0:
		w.emit(Remove, "")
		w.gone = true
	case what&unix.IN_MOVE_SELF != 0:
		w.emit(Rename, "")
		w.gone = true
	}
	return nil
}

// later lets a directory go that vanished before it could be watched.
func (w *Watcher) later(err error) error {
	if err == nil || errors.Is(err, unix.ENOENT) || errors.Is(err, unix.ENOTDIR) || errors.Is(err, unix.EACCES) || errors.Is(err, unix.ELOOP) {
		return nil
	}
	return err
}

// emit leaves out what only repeats the event before it.
func (w *Watcher) emit(kind Kind, name string) {
	if n := len(w.out); n > 0 && w.out[n-1] == (Event{Kind: kind, Name: name}) {
		return
	}
	w.out = append(w.out, Event{Kind: kind, Name: name})
}

func (w *Watcher) renameTree(from, to string) {
	for name, id := range w.below(from) {
		renamed := to + strings.TrimPrefix(name, from)
		delete(w.ids, name)
		w.ids[renamed], w.names[id] = id, renamed
	}
}

// movedAway stops watching a directory that left the tree.
func (w *Watcher) movedAway() {
	if w.moved == nil {
		return
	}
	for name, id := range w.below(w.moved.name) {
		_, _ = unix.InotifyRmWatch(w.fd, uint32(id))
		delete(w.ids, name)
		delete(w.names, id)
	}
	w.moved = nil
}

func (w *Watcher) below(dir string) map[string]int32 {
	found := map[string]int32{}
	for name, id := range w.ids {
		if name == dir || strings.HasPrefix(name, dir+"/") {
			found[name] = id
		}
	}
	return found
}
