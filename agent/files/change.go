package files

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"sort"

	"golang.org/x/sys/unix"
	"google.golang.org/grpc/codes"

	"space/agent/account"
	"space/agent/fault"
)

const (
	maxDepth     = 4096
	maxDirectory = 1 << 20 // entries of one directory that are listed
)

// List gives the entries below a directory depth first, by name. It follows a link given as the root,
// and no other.
func List(who account.Account, root string, depth uint32, xattrs bool, give func(*Entry) error) error {
	if depth == 0 {
		depth = 1
	}
	if depth > maxDepth {
		depth = maxDepth
	}
	var stat unix.Stat_t
	if err := who.Do(func() error { return unix.Stat(root, &stat) }); err != nil {
		return fault.Path(err, root)
	}
	if typeOf(stat.Mode) != TypeDirectory {
		return fault.Path(unix.ENOTDIR, root)
	}
	return list(who, root, depth, xattrs, true, give)
}

func list(who account.Account, dir string, depth uint32, xattrs, isRoot bool, give func(*Entry) error) error {
	const atOnce = 256
	var names []string
	err := who.Do(func() error {
		opened, err := os.Open(dir)
		if err != nil {
			return err
		}
		defer opened.Close()
		names, err = opened.Readdirnames(maxDirectory)
		if errors.Is(err, fs.ErrNotExist) || len(names) == 0 {
			return nil
		}
		return err
	})
	if err != nil {
		if !isRoot {
			return nil // what vanishes or is closed to the user is skipped
		}
		return fault.Path(err, dir)
	}
	sort.Strings(names)
	for len(names) > 0 {
		some := names[:min(atOnce, len(names))]
		names = names[len(some):]
		entries := make([]*Entry, 0, len(some))
		_ = who.Do(func() error {
			for _, name := range some {
				if entry, err := look(filepath.Join(dir, name), xattrs); err == nil {
					entries = append(entries, entry)
				}
			}
			return nil
		})
		for _, entry := range entries {
			if err := give(entry); err != nil {
				return err
			}
			if entry.Type == TypeDirectory && depth > 1 {
				if err := list(who, entry.Path, depth-1, xattrs, false, give); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// MakeDir makes a directory, with its parents when asked.
func MakeDir(who account.Account, path string, mode uint32, parents bool) (entry *Entry, err error) {
	if mode == 0 {
		mode = 0o755
	}
	err = who.Do(func() error {
		if parents {
			if err := makeParents(path); err != nil {
				return err
			}
		}
		if err := unix.Mkdir(path, mode&0o7777); err != nil {
			return err
		}
		if err := unix.Chmod(path, mode&0o7777); err != nil { // whatever the umask
			return err
		}
		entry, err = look(path, true)
		return err
	})
	if errors.Is(err, unix.EEXIST) {
		if info, statErr := os.Stat(path); statErr == nil && !info.IsDir() {
			return nil, fault.New(codes.FailedPrecondition, "not_a_directory", "%q exists and is no directory", path)
		}
	}
	return entry, fault.Path(err, path)
}

func makeParents(path string) error {
	dir := filepath.Dir(filepath.Clean(path))
	if info, err := os.Stat(dir); err == nil {
		if !info.IsDir() {
			return unix.ENOTDIR
		}
		return nil
	}
	return os.MkdirAll(dir, 0o755)
}

// Move renames, over what is there unless told otherwise.
func Move(who account.Account, source, destination string, parents, noOverwrite bool) (entry *Entry, err error) {
	var at string
	err = who.Do(func() error {
		at = source
		if _, err := os.Lstat(source); err != nil {
			return err
		}
		at = destination
		if parents {
			if err := makeParents(destination); err != nil {
				return err
			}
		}
		flags := uint(0)
		if noOverwrite {
			flags = unix.RENAME_NOREPLACE
		}
		if err := unix.Renameat2(unix.AT_FDCWD, source, unix.AT_FDCWD, destination, flags); err != nil {
			return err
		}
		entry, err = look(destination, true)
		return err
	})
	if errors.Is(err, unix.EXDEV) {
		return nil, fault.New(codes.FailedPrecondition, "invalid_argument", "%q and %q are on different file systems", source, destination)
	}
	return entry, fault.Path(err, at)
}

// Remove removes an entry, a directory with all in it when asked, and counts what went. Nothing there
// is no error.
func Remove(who account.Account, path string, recursive bool) (removed uint64, err error) {
	err = who.Do(func() error {
		var stat unix.Stat_t
		if err := unix.Lstat(path, &stat); err != nil {
			if errors.Is(err, unix.ENOENT) {
				return nil
			}
			return err
		}
		if typeOf(stat.Mode) != TypeDirectory {
			if err := unix.Unlink(path); err != nil {
				return err
			}
			removed = 1
			return nil
		}
		if !recursive {
			if err := unix.Rmdir(path); err != nil {
				return err
			}
			removed = 1
			return nil
		}
		parent, err := unix.Open(filepath.Dir(path), unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
		if err != nil {
			return err
		}
		defer unix.Close(parent)
		return removeTree(parent, filepath.Base(path), &removed, 0)
	})
	return removed, fault.Path(err, path)
}

// removeTree goes by descriptors, so that a directory exchanged for a link leads nowhere else.
func removeTree(parent int, name string, removed *uint64, depth int) error {
	if err := unix.Unlinkat(parent, name, 0); err == nil {
		*removed++
		return nil
	} else if errors.Is(err, unix.ENOENT) {
		return nil
	} else if !errors.Is(err, unix.EISDIR) && !errors.Is(err, unix.EPERM) {
		return err
	}
	if depth > maxDepth {
		return unix.ELOOP
	}
	fd, err := unix.Openat(parent, name, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	dir := os.NewFile(uintptr(fd), name)
	for {
		names, err := dir.Readdirnames(1024)
		for _, each := range names {
			if err := removeTree(fd, each, removed, depth+1); err != nil {
				dir.Close()
				return err
			}
		}
		if err != nil || len(names) == 0 {
			break
		}
		if _, err := dir.Seek(0, 0); err != nil {
			break
		}
	}
	dir.Close()
	if err := unix.Unlinkat(parent, name, unix.AT_REMOVEDIR); err != nil {
		return err
	}
	*removed++
	return nil
}
