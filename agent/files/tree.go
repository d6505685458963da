package files

import (
	"archive/tar"
	"errors"
	"io"
	"os"
	"path"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
	"google.golang.org/grpc/codes"

	"space/agent/account"
	"space/agent/fault"
)

const (
	paxXattr      = "SCHILY.xattr."
	maxLinksKnown = 1 << 18 // names of files with several that one archive tells apart
)

// ReadTree writes what is below a path as a tar stream: modes, owners, links and attributes below
// "user." are kept, sockets are left out. A path that is no directory is the archive's only entry.
func ReadTree(who account.Account, root string, names *account.Names, out io.Writer) error {
	archive := &archiver{who: who, names: names, tar: tar.NewWriter(out), seen: map[[2]uint64]string{}}
	var stat unix.Stat_t
	if err := who.Do(func() error { return unix.Stat(root, &stat) }); err != nil {
		return fault.Path(err, root)
	}
	name := "."
	if typeOf(stat.Mode) != TypeDirectory {
		name = filepath.Base(root)
	} else if resolved, err := filepath.EvalSymlinks(root); err == nil {
		root = resolved
	}
	if err := archive.add(root, name, 0); err != nil {
		return err
	}
	return archive.tar.Close()
}

type archiver struct {
	who   account.Account
	names *account.Names
	tar   *tar.Writer
	seen  map[[2]uint64]string
}

func (a *archiver) add(file, name string, depth int) error {
	var entry *Entry
	var stat unix.Stat_t
	err := a.who.Do(func() (err error) {
		if err := unix.Lstat(file, &stat); err != nil {
			return err
		}
		entry, err = look(file, true)
		return err
	})
	if errors.Is(err, unix.ENOENT) && depth > 0 {
		return nil
	}
	if err != nil {
		return fault.Path(err, file)
	}
	header := &tar.Header{
		Name: name, Mode: int64(entry.Mode), Uid: int(entry.UID), Gid: int(entry.GID),
		Uname: a.names.User(entry.UID), Gname: a.names.Group(entry.GID),
		ModTime: time.Unix(0, entry.ModifiedUnixNanos), Format: tar.FormatPAX,
		PAXRecords: map[string]string{},
	}
	for attribute, value := range entry.Xattrs {
		header.PAXRecords[paxXattr+xattrUser+attribute] = string(value)
	}
	switch entry.Type {
	case TypeDirectory:
		header.Typeflag, header.Name = tar.TypeDir, name+"/"
	case TypeSymlink:
		header.Typeflag, header.Linkname = tar.TypeSymlink, entry.SymlinkTarget
	case TypeFIFO:
		header.Typeflag = tar.TypeFifo
	case TypeCharDevice, TypeBlockDevice:
		header.Typeflag = tar.TypeChar
		if entry.Type == TypeBlockDevice {
			header.Typeflag = tar.TypeBlock
		}
		header.Devmajor, header.Devminor = int64(unix.Major(stat.Rdev)), int64(unix.Minor(stat.Rdev))
	case TypeFile:
		id := [2]uint64{stat.Dev, stat.Ino}
		if first, linked := a.seen[id]; linked {
			header.Typeflag, header.Linkname, header.PAXRecords = tar.TypeLink, first, nil
			break
		}
		if stat.Nlink > 1 && len(a.seen) < maxLinksKnown {
			a.seen[id] = name
		}
		return a.file(file, header)
	default:
		return nil
	}
	if err := a.header(header, file); err != nil || entry.Type != TypeDirectory {
		return err
	}
	if depth > maxDepth {
		return fault.Path(unix.ELOOP, file)
	}
	return list(a.who, file, 1, false, depth == 0, func(child *Entry) error {
		return a.add(child.Path, path.Join(name, child.Name), depth+1)
	})
}

func (a *archiver) header(header *tar.Header, file string) error {
	if len(header.PAXRecords) == 0 {
		header.PAXRecords = nil
	}
	if err := a.tar.WriteHeader(header); err != nil {
		return fault.Path(err, file)
	}
	return nil
}

// file copies exactly as many bytes as its header says, whatever happens to it meanwhile.
func (a *archiver) file(file string, header *tar.Header) error {
	var opened *os.File
	err := a.who.Do(func() error {
		fd, err := unix.Open(file, unix.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
		if err != nil {
			return err
		}
		opened = os.NewFile(uintptr(fd), file)
		return nil
	})
	if err != nil {
		return fault.Path(err, file)
	}
	defer opened.Close()
	info, err := opened.Stat()
	if err != nil || !info.Mode().IsRegular() {
		return nil
	}
	header.Typeflag, header.Size = tar.TypeReg, info.Size()
	if err := a.header(header, file); err != nil {
		return err
	}
	copied, err := io.CopyN(a.tar, opened, header.Size)
	if errors.Is(err, io.EOF) {
		_, err = io.CopyN(a.tar, zeros{}, header.Size-copied)
	}
	return fault.Path(err, file)
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) {
	clear(p)
	return len(p), nil
}

// Unpacked counts what WriteTree made.
type Unpacked struct {
	Files, Bytes uint64
}

// WriteTree unpacks a tar stream below a directory, which it makes. No entry gets out of it: names are
// resolved as if the directory were the root, links of the archive and of the directory included.
func WriteTree(who account.Account, root string, keepOwners bool, in io.Reader) (done Unpacked, err error) {
	u := &unpacker{who: who, owners: keepOwners && who.UID == 0}
	err = who.Do(func() error {
		if err := os.MkdirAll(root, 0o755); err != nil {
			return err
		}
		u.root, err = unix.Open(root, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
		return err
	})
	if err != nil {
		return done, writeFault(err, root)
	}
	defer unix.Close(u.root)
	archive := tar.NewReader(in)
	for {
		header, err := archive.Next()
		if errors.Is(err, io.EOF) {
			return u.done, u.finish()
		}
		if err != nil {
			return u.done, broken(err)
		}
		if err := who.Do(func() error { return u.entry(header, archive) }); err != nil {
			return u.done, err
		}
	}
}

func broken(err error) error {
	if errors.Is(err, tar.ErrHeader) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, tar.ErrFieldTooLong) {
		return fault.New(codes.InvalidArgument, "broken_archive", "not a whole tar stream: %v", err)
	}
	return err
}

type unpacker struct {
	who    account.Account
	owners bool
	root   int
	done   Unpacked
	dirs   []*tar.Header // whose mode and time are set last
}

const maxDirsKept = 1 << 18

func (u *unpacker) entry(header *tar.Header, content io.Reader) error {
	name := path.Clean("/" + header.Name)[1:]
	if name == "" {
		if header.Typeflag == tar.TypeDir {
			u.later(header, ".")
		}
		return nil
	}
	parent, base, err := u.parent(name)
	if err != nil {
		return writeFault(err, name)
	}
	defer unix.Close(parent)
	if err := u.make(parent, base, header, content); err != nil {
		if broken := broken(err); broken != err {
			return broken
		}
		return writeFault(err, name)
	}
	u.done.Files++
	return nil
}

func (u *unpacker) later(header *tar.Header, name string) {
	if len(u.dirs) < maxDirsKept {
		kept := *header
		kept.Name = name
		u.dirs = append(u.dirs, &kept)
	}
}

func (u *unpacker) openDir(name string) (int, error) {
	return unix.Openat2(u.root, name, &unix.OpenHow{
		Flags:   unix.O_PATH | unix.O_DIRECTORY | unix.O_CLOEXEC,
		Resolve: unix.RESOLVE_IN_ROOT | unix.RESOLVE_NO_MAGICLINKS,
	})
}

func (u *unpacker) parent(name string) (fd int, base string, err error) {
	dir, base := path.Split(name)
	dir = strings.TrimSuffix(dir, "/")
	if dir == "" {
		dir = "."
	}
	fd, err = u.openDir(dir)
	if !errors.Is(err, unix.ENOENT) {
		return fd, base, err
	}
	up, last, err := u.parent(dir)
	if err != nil {
		return -1, "", err
	}
	err = unix.Mkdirat(up, last, 0o755)
	unix.Close(up)
	if err != nil && !errors.Is(err, unix.EEXIST) {
		return -1, "", err
	}
	fd, err = u.openDir(dir)
	return fd, base, err
}

func (u *unpacker) make(parent int, base string, header *tar.Header, content io.Reader) error {
	mode := uint32(header.Mode) & 0o7777
	if header.Typeflag == tar.TypeDir {
		if err := unix.Mkdirat(parent, base, 0o700|mode); err != nil {
			var stat unix.Stat_t
			if !errors.Is(err, unix.EEXIST) || unix.Fstatat(parent, base, &stat, 0) != nil || typeOf(stat.Mode) != TypeDirectory {
				return err
			}
		}
		u.later(header, path.Clean("/" + header.Name)[1:])
		return u.own(parent, base, header)
	}
	if err := unix.Unlinkat(parent, base, 0); err != nil && !errors.Is(err, unix.ENOENT) {
		return err
	}
	switch header.Typeflag {
	case tar.TypeReg:
		return u.file(parent, base, header, content)
	case tar.TypeSymlink:
		if err := unix.Symlinkat(header.Linkname, parent, base); err != nil {
			return err
		}
		return u.own(parent, base, header)
	case tar.TypeLink:
		target := path.Clean("/" + header.Linkname)[1:]
		dir, last, err := u.parent(target)
		if err != nil {
			return err
		}
		defer unix.Close(dir)
		return unix.Linkat(dir, last, parent, base, 0)
	case tar.TypeFifo, tar.TypeChar, tar.TypeBlock:
		kind := map[byte]uint32{tar.TypeFifo: unix.S_IFIFO, tar.TypeChar: unix.S_IFCHR, tar.TypeBlock: unix.S_IFBLK}[header.Typeflag]
		device := unix.Mkdev(uint32(header.Devmajor), uint32(header.Devminor))
		if err := unix.Mknodat(parent, base, kind|mode, int(device)); err != nil {
			return err
		}
		if err := u.own(parent, base, header); err != nil {
			return err
		}
		return unix.Fchmodat(parent, base, mode, 0)
	default:
		return fault.New(codes.InvalidArgument, "broken_archive", "%q is of an unknown kind %q", header.Name, header.Typeflag)
	}
}

func (u *unpacker) own(parent int, base string, header *tar.Header) error {
	if !u.owners {
		return nil // what is made is the user's already
	}
	return unix.Fchownat(parent, base, header.Uid, header.Gid, unix.AT_SYMLINK_NOFOLLOW)
}

func (u *unpacker) file(parent int, base string, header *tar.Header, content io.Reader) error {
	fd, err := unix.Openat(parent, base, unix.O_WRONLY|unix.O_CREAT|unix.O_EXCL|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0o600)
	if err != nil {
		return err
	}
	file := os.NewFile(uintptr(fd), base)
	defer file.Close()
	copied, err := io.Copy(file, content)
	u.done.Bytes += uint64(copied)
	if err == nil {
		err = u.own(parent, base, header)
	}
	if err == nil {
		err = unix.Fchmod(fd, uint32(header.Mode)&0o7777)
	}
	if err == nil {
		err = setXattrs(fd, header)
	}
	if err != nil {
		_ = unix.Unlinkat(parent, base, 0)
		return err
	}
	when := unix.NsecToTimespec(header.ModTime.UnixNano())
	_ = unix.UtimesNanoAt(unix.AT_FDCWD, "/proc/self/fd/"+strconv.Itoa(fd), []unix.Timespec{when, when}, 0)
	return nil
}

func setXattrs(fd int, header *tar.Header) error {
	for record, value := range header.PAXRecords {
		if name, ok := strings.CutPrefix(record, paxXattr); ok && strings.HasPrefix(name, xattrUser) {
			if err := unix.Fsetxattr(fd, name, []byte(value), 0); err != nil && !errors.Is(err, unix.ENOTSUP) {
				return err
			}
		}
	}
	return nil
}

// finish gives directories their modes and times, children first: making entries would change them.
func (u *unpacker) finish() error {
	return u.who.Do(func() error {
		for i := len(u.dirs) - 1; i >= 0; i-- {
			header := u.dirs[i]
			fd, err := u.openDir(header.Name)
			if err != nil {
				continue // replaced by a later entry
			}
			self := "/proc/self/fd/" + strconv.Itoa(fd)
			if u.owners && header.Name == "." {
				_ = unix.Chown(self, header.Uid, header.Gid)
			}
			err = unix.Chmod(self, uint32(header.Mode)&0o7777)
			when := unix.NsecToTimespec(header.ModTime.UnixNano())
			_ = unix.UtimesNanoAt(unix.AT_FDCWD, self, []unix.Timespec{when, when}, 0)
			if readable, openErr := unix.Open(self, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0); openErr == nil {
				_ = setXattrs(readable, header)
				unix.Close(readable)
			}
			unix.Close(fd)
			if err != nil && header.Name != "." {
				return fault.Path(err, header.Name)
			}
		}
		return nil
	})
}
