package files

import (
	"archive/tar"
	"bytes"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"space/agent/account"
)

var (
	root   = account.Account{Name: "root"}
	nobody = account.Account{Name: "nobody", UID: 65534, GID: 65534, Groups: []uint32{65534}, Home: "/"}
	names  = account.Directory{Root: "/"}.Names()
)

func put(t *testing.T, who account.Account, target Target, content string) (*Entry, error) {
	t.Helper()
	w, err := Write(who, target)
	if err != nil {
		return nil, err
	}
	if err := w.Append([]byte(content)); err != nil {
		w.Abort()
		return nil, err
	}
	return w.Finish()
}

func mustPut(t *testing.T, path, content string) {
	t.Helper()
	if _, err := put(t, root, Target{Path: path}, content); err != nil {
		t.Fatal(err)
	}
}

func get(t *testing.T, who account.Account, path string, offset, length uint64) (string, error) {
	t.Helper()
	r, err := Read(who, path, offset, length)
	if err != nil {
		return "", err
	}
	defer r.Close()
	var all []byte
	buf := make([]byte, 7)
	for {
		n, err := r.Next(buf)
		if err == io.EOF {
			return string(all), nil
		}
		if err != nil {
			return "", err
		}
		all = append(all, buf[:n]...)
	}
}

func wantReason(t *testing.T, err error, reason string) {
	t.Helper()
	if !strings.HasPrefix(status.Convert(err).Message(), reason+": ") {
		t.Fatalf("want %s, got %v", reason, err)
	}
}

// open makes a directory that every user may enter and write to.
func open(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("/tmp", "files")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	if err := os.Chmod(dir, 0o777); err != nil {
		t.Fatal(err)
	}
	return dir
}

// Behaviour 31.
func TestNamesOfAllKindsAndModes(t *testing.T) {
	dir := open(t)
	for _, name := range []string{"a b", "quo'te\"", "new\nline", "日本 ü", "-rf", "*"} {
		path := filepath.Join(dir, name)
		entry, err := put(t, root, Target{Path: path, Mode: 0o751}, "content of "+name)
		if err != nil || entry.Mode != 0o751 || entry.Name != name {
			t.Fatalf("%q: %+v %v", name, entry, err)
		}
		if got, err := get(t, root, path, 0, 0); err != nil || got != "content of "+name {
			t.Fatalf("%q: %q %v", name, got, err)
		}
	}
	count := 0
	if err := List(root, dir, 1, false, func(*Entry) error { count++; return nil }); err != nil || count != 6 {
		t.Fatalf("%d listed, %v", count, err)
	}
}

func TestOverwritingKeepsModeAndShrinks(t *testing.T) {
	path := filepath.Join(open(t), "f")
	if _, err := put(t, root, Target{Path: path, Mode: 0o600}, "long content"); err != nil {
		t.Fatal(err)
	}
	for _, atomic := range []bool{false, true} {
		entry, err := put(t, root, Target{Path: path, Atomic: atomic}, "short")
		if got, _ := get(t, root, path, 0, 0); err != nil || got != "short" || entry.Mode != 0o600 {
			t.Fatalf("%q %+v %v", got, entry, err)
		}
	}
	if _, err := put(t, root, Target{Path: path, Offset: 3}, "XYZ"); err != nil {
		t.Fatal(err)
	}
	if got, _ := get(t, root, path, 1, 4); got != "hoXY" {
		t.Fatalf("got %q", got)
	}
}

func TestAbortedNewFilesAreRemovedAndOldOnesStay(t *testing.T) {
	path := filepath.Join(open(t), "f")
	for _, atomic := range []bool{false, true} {
		w, err := Write(root, Target{Path: path, Atomic: atomic})
		if err != nil {
			t.Fatal(err)
		}
		_ = w.Append([]byte("half"))
		w.Abort()
	}
	left, _ := os.ReadDir(filepath.Dir(path))
	if len(left) != 0 {
		t.Fatalf("left: %v", left)
	}
}

// Behaviour 32.
func TestSpecialFilesAreRefusedAtOnce(t *testing.T) {
	dir := open(t)
	fifo := filepath.Join(dir, "fifo")
	if err := unix.Mkfifo(fifo, 0o666); err != nil {
		t.Fatal(err)
	}
	for path, reason := range map[string]string{fifo: "not_a_file", "/dev/zero": "not_a_file", dir: "not_a_file", dir + "/none": "file_not_found"} {
		_, err := Read(root, path, 0, 0)
		wantReason(t, err, reason)
	}
	_, err := Write(root, Target{Path: fifo})
	wantReason(t, err, "not_a_file")
	loop := filepath.Join(dir, "loop")
	if err := os.Symlink("loop", loop); err != nil {
		t.Fatal(err)
	}
	_, err = Read(root, loop, 0, 0)
	wantReason(t, err, "link_loop")
	if entry, err := Stat(root, loop); err != nil || entry.Type != TypeSymlink || entry.SymlinkTarget != "loop" || entry.TargetType != TypeUnknown {
		t.Fatalf("%+v %v", entry, err)
	}
}

// Behaviour 34.
func TestProcFilesAreReadToTheirTrueEnd(t *testing.T) {
	want, _ := os.ReadFile("/proc/cpuinfo")
	got, err := get(t, root, "/proc/cpuinfo", 0, 0)
	if err != nil || len(got) == 0 || len(got) < len(want)/2 {
		t.Fatalf("%d bytes, %v", len(got), err)
	}
}

func TestAUserHasItsOwnRightsAndOwnsWhatItMakes(t *testing.T) {
	dir := open(t)
	entry, err := put(t, nobody, Target{Path: dir + "/a/b/f", Parents: true}, "x")
	if err != nil || entry.UID != 65534 || entry.GID != 65534 {
		t.Fatalf("%+v %v", entry, err)
	}
	if parent, _ := Stat(root, dir+"/a"); parent.UID != 65534 {
		t.Fatalf("%+v", parent)
	}
	if _, err := put(t, root, Target{Path: dir + "/secret", Mode: 0o600}, "x"); err != nil {
		t.Fatal(err)
	}
	_, err = Read(nobody, dir+"/secret", 0, 0)
	wantReason(t, err, "permission_denied")
	_, err = Write(nobody, Target{Path: "/etc/space-test"})
	wantReason(t, err, "permission_denied")
	if _, err := Read(root, dir+"/secret", 0, 0); err != nil {
		t.Fatalf("root's rights didn't come back: %v", err)
	}
}

// Behaviour 33.
func TestAFullDiskGivesFiguresAndLeavesNoPart(t *testing.T) {
	dir := t.TempDir()
	if err := unix.Mount("tmpfs", dir, "tmpfs", 0, "size=64k"); err != nil {
		t.Skipf("no mounting here: %v", err)
	}
	defer unix.Unmount(dir, unix.MNT_DETACH)
	_, err := put(t, root, Target{Path: dir + "/big"}, strings.Repeat("x", 1<<20))
	if status.Code(err) != codes.ResourceExhausted || !strings.Contains(err.Error(), "of 65536 bytes") {
		t.Fatalf("got %v", err)
	}
	if _, err := os.Stat(dir + "/big"); err == nil {
		t.Fatal("a part is left")
	}
}

func TestMoveMakeAndRemove(t *testing.T) {
	dir := open(t)
	mustPut(t, dir+"/f", "1")
	mustPut(t, dir+"/g", "2")
	_, err := Move(root, dir+"/f", dir+"/g", false, true)
	wantReason(t, err, "already_exists")
	if entry, err := Move(root, dir+"/f", dir+"/new/deep/f", true, false); err != nil || entry.Name != "f" {
		t.Fatal(entry, err)
	}
	_, err = MakeDir(root, dir+"/new", 0, true)
	wantReason(t, err, "already_exists")
	_, err = MakeDir(root, dir+"/g", 0, false)
	wantReason(t, err, "not_a_directory")
	_, err = Remove(root, dir+"/new", false)
	wantReason(t, err, "not_empty")
	if n, err := Remove(root, dir+"/new", true); n != 3 || err != nil {
		t.Fatal(n, err)
	}
	if n, err := Remove(root, dir+"/new", true); n != 0 || err != nil {
		t.Fatal(n, err)
	}
}

func TestATreeComesBackAsItWent(t *testing.T) {
	from, to := open(t), open(t)
	_ = os.MkdirAll(from+"/sub dir", 0o755)
	mustPut(t, from+"/sub dir/file", "content")
	for _, err := range []error{
		os.MkdirAll(from+"/d", 0o755),
		os.WriteFile(from+"/d/x", bytes.Repeat([]byte("y"), 200_000), 0o640),
		os.Chmod(from+"/d/x", 0o4751),
		os.Link(from+"/d/x", from+"/hard"),
		os.Symlink("../outside", from+"/d/link"),
		unix.Mkfifo(from+"/fifo", 0o620),
		os.Lchown(from+"/d/link", 12, 34),
		os.Chown(from+"/d", 56, 78),
		os.Chmod(from+"/d", 0o511),
		os.Chtimes(from+"/d", time.Unix(1e9, 0), time.Unix(1e9, 0)),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	attributes := unix.Setxattr(from+"/d/x", "user.a", []byte{0xff, 0, 1}, 0) == nil
	var archive bytes.Buffer
	if err := ReadTree(root, from, names, &archive); err != nil {
		t.Fatal(err)
	}
	done, err := WriteTree(root, to, true, &archive)
	if err != nil || done.Bytes < 200_000 {
		t.Fatal(done, err)
	}
	seen := func(dir string) map[string]Entry {
		all := map[string]Entry{}
		if err := List(root, dir, 99, true, func(e *Entry) error {
			e.Path, _ = filepath.Rel(dir, e.Path)
			e.Inode, e.ResolvedPath = 0, ""
			if e.Type != TypeFile && e.Type != TypeDirectory {
				e.ModifiedUnixNanos = 0
			}
			if e.Type == TypeDirectory {
				e.Size = 0
			}
			all[e.Path] = *e
			return nil
		}); err != nil {
			t.Fatal(err)
		}
		return all
	}
	want, got := seen(from), seen(to)
	for name, entry := range want {
		other := got[name]
		if entry.ModifiedUnixNanos != other.ModifiedUnixNanos {
			t.Errorf("%s: time %d, %d", name, entry.ModifiedUnixNanos, other.ModifiedUnixNanos)
		}
		if entry.Mode != other.Mode || entry.UID != other.UID || entry.GID != other.GID || entry.Type != other.Type || entry.SymlinkTarget != other.SymlinkTarget || entry.Size != other.Size {
			t.Errorf("%s: %+v, %+v", name, entry, other)
		}
		if attributes && !bytes.Equal(entry.Xattrs["a"], other.Xattrs["a"]) {
			t.Errorf("%s: attributes %v", name, other.Xattrs)
		}
	}
	if len(got) != len(want) {
		t.Errorf("%d entries, %d", len(want), len(got))
	}
	var a, b unix.Stat_t
	_, _ = unix.Stat(to+"/hard", &a), unix.Stat(to+"/d/x", &b)
	if a.Ino != b.Ino {
		t.Error("the hard link is a copy")
	}
}

func TestAnArchiveStaysInItsDirectory(t *testing.T) {
	outside, to := open(t), open(t)
	var archive bytes.Buffer
	w := tar.NewWriter(&archive)
	for _, header := range []*tar.Header{
		{Name: "../../up", Typeflag: tar.TypeReg, Mode: 0o644, Size: 1},
		{Name: "link", Typeflag: tar.TypeSymlink, Linkname: outside},
		{Name: "link/in", Typeflag: tar.TypeReg, Mode: 0o644, Size: 1},
	} {
		if err := w.WriteHeader(header); err != nil {
			t.Fatal(err)
		}
		if header.Size > 0 {
			_, _ = w.Write([]byte("x"))
		}
	}
	_ = w.Close()
	_, _ = WriteTree(root, to, false, &archive)
	if left, _ := os.ReadDir(outside); len(left) != 0 {
		t.Fatalf("outside: %v", left)
	}
	if _, err := os.Stat(to + "/up"); err != nil {
		t.Fatal(err)
	}
	_, err := WriteTree(root, to, false, strings.NewReader(strings.Repeat("junk", 1000)))
	wantReason(t, err, "broken_archive")
}

// A write can replace the attributes below a prefix: old ones go, others stay.
func TestWriteReplacesAttributes(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x")
	write := func(attributes map[string][]byte) *Entry {
		t.Helper()
		w, err := Write(root, Target{
			Path: path, ReplaceXattrs: true, XattrPrefix: "p.", Xattrs: attributes,
		})
		if err != nil {
			t.Fatal(err)
		}
		if err := w.Append([]byte("x")); err != nil {
			t.Fatal(err)
		}
		entry, err := w.Finish()
		if err != nil {
			t.Fatal(err)
		}
		return entry
	}
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := unix.Setxattr(path, "user.other", []byte("stays"), 0); err != nil {
		t.Skip("no attributes on this file system:", err)
	}
	entry := write(map[string][]byte{"a": []byte("1"), "b": []byte("2")})
	if string(entry.Xattrs["p.a"]) != "1" || string(entry.Xattrs["p.b"]) != "2" {
		t.Errorf("written: %v", entry.Xattrs)
	}
	entry = write(map[string][]byte{"b": []byte("3")})
	if len(entry.Xattrs) != 2 || string(entry.Xattrs["p.b"]) != "3" || string(entry.Xattrs["other"]) != "stays" {
		t.Errorf("replaced: %v", entry.Xattrs)
	}
	if entry = write(nil); len(entry.Xattrs) != 1 {
		t.Errorf("cleared: %v", entry.Xattrs)
	}
	reading, err := Read(root, path, 0, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer reading.Close()
	if string(reading.Entry.Xattrs["other"]) != "stays" {
		t.Errorf("read: %v", reading.Entry.Xattrs)
	}
}
