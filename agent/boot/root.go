package boot

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"
)

const (
	deviceWait = 30 * time.Second
	// Cgroup is the directory below which every process has a cgroup of its own.
	Cgroup = "/sys/fs/cgroup/space"

	lowerDevice, upperDevice = "/dev/vda", "/dev/vdb"
	lowerDir, upperDir       = "/lower", "/upper"
	newRoot                  = "/newroot"
)

type mount struct {
	source, target, kind string
	flags                uintptr
	data                 string
}

const plain = unix.MS_NOSUID | unix.MS_NODEV | unix.MS_NOEXEC

func (m mount) do() error {
	if err := os.MkdirAll(m.target, 0o755); err != nil {
		return err
	}
	if err := unix.Mount(m.source, m.target, m.kind, m.flags, m.data); err != nil && !errors.Is(err, unix.EBUSY) {
		return fmt.Errorf("mount %s (%s) on %s: %w", m.source, m.kind, m.target, err)
	}
	return nil
}

func mountAll(mounts ...mount) error {
	for _, m := range mounts {
		if err := m.do(); err != nil {
			return err
		}
	}
	return nil
}

// MountKernel mounts what the first steps need, in the initramfs.
func MountKernel() error {
	return mountAll(
		mount{"proc", "/proc", "proc", plain, ""},
		mount{"sysfs", "/sys", "sysfs", plain, ""},
		mount{"devtmpfs", "/dev", "devtmpfs", unix.MS_NOSUID, "mode=0755"},
	)
}

// Root is the guest's file system after EnterRoot.
type Root struct {
	upper int // the writable disk, which has no path any more
}

// EnterRoot lays the sandbox's disk over the template's image and makes that the root directory.
func EnterRoot(uevents *Uevents) (*Root, error) {
	for _, device := range []string{lowerDevice, upperDevice} {
		if err := uevents.Wait(device, deviceWait, func() bool { return exists(device) }); err != nil {
			return nil, err
		}
	}
	if err := mountAll(
		mount{lowerDevice, lowerDir, "ext4", unix.MS_RDONLY | unix.MS_NOATIME, ""},
		mount{upperDevice, upperDir, "ext4", unix.MS_NOATIME, ""},
	); err != nil {
		return nil, err
	}
	for _, dir := range []string{"/upper/upper", "/upper/work"} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return nil, err
		}
	}
	upper, err := unix.Open(upperDir, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("open %s: %w", upperDir, err)
	}
	// redirect_dir lets programs rename directories of the template; the image below never changes.
	overlay := mount{
		"space", newRoot, "overlay", unix.MS_NOATIME,
		"lowerdir=/lower,upperdir=/upper/upper,workdir=/upper/work,redirect_dir=on",
	}
	if err := overlay.do(); err != nil {
		return nil, err
	}
	for _, dir := range []string{"/dev", "/proc", "/sys"} {
		target := newRoot + dir
		if err := directory(target); err != nil {
			return nil, err
		}
		if err := unix.Mount(dir, target, "", unix.MS_MOVE, ""); err != nil {
			return nil, fmt.Errorf("move %s: %w", dir, err)
		}
	}
	dropInitramfs()
	if err := unix.Chdir(newRoot); err != nil {
		return nil, err
	}
	if err := unix.Mount(".", "/", "", unix.MS_MOVE, ""); err != nil {
		return nil, fmt.Errorf("move the root: %w", err)
	}
	if err := unix.Chroot("."); err != nil {
		return nil, err
	}
	return &Root{upper: upper}, unix.Chdir("/")
}

// directory makes a mount point where the image has none, or something else in its place.
func directory(name string) error {
	info, err := os.Lstat(name)
	if err == nil && info.IsDir() {
		return nil
	}
	if err == nil {
		if err := os.Remove(name); err != nil {
			return err
		}
	}
	return os.MkdirAll(name, 0o755)
}

// dropInitramfs gives back the memory of what is not needed again.
func dropInitramfs() {
	_ = os.RemoveAll("/modules")
	_ = os.Remove("/init")
}

// FinishRoot mounts the rest and mends what images leave to the runtime.
func FinishRoot() error {
	for _, dir := range []string{"/dev/pts", "/dev/shm", "/run", "/tmp"} {
		if err := directory(dir); err != nil {
			return err
		}
	}
	if info, err := os.Stat("/tmp"); err == nil && info.Mode()&os.ModeSticky == 0 {
		_ = os.Chmod("/tmp", 0o777|os.ModeSticky)
	}
	if err := mountAll(
		mount{"devpts", "/dev/pts", "devpts", unix.MS_NOSUID | unix.MS_NOEXEC, "mode=0620,gid=5,ptmxmode=0666"},
		mount{"tmpfs", "/dev/shm", "tmpfs", unix.MS_NOSUID | unix.MS_NODEV, "mode=1777"},
		mount{"tmpfs", "/run", "tmpfs", unix.MS_NOSUID | unix.MS_NODEV, "mode=0755,size=25%"},
		mount{"cgroup2", "/sys/fs/cgroup", "cgroup2", plain, ""},
	); err != nil {
		return err
	}
	for _, dir := range []string{"/run/lock", "/run/user"} {
		_ = os.MkdirAll(dir, 0o755)
	}
	for name, target := range map[string]string{
		"/dev/fd": "/proc/self/fd", "/dev/stdin": "/proc/self/fd/0",
		"/dev/stdout": "/proc/self/fd/1", "/dev/stderr": "/proc/self/fd/2",
	} {
		if err := os.Symlink(target, name); err != nil && !errors.Is(err, os.ErrExist) {
			return err
		}
	}
	return nil
}

func exists(file string) bool {
	_, err := os.Stat(file)
	return err == nil
}

// PowerOff writes everything to the disks, leaves them clean and ends the machine.
func (r *Root) PowerOff(reboot bool) {
	unix.Sync()
	_ = unix.Mount("", "/", "", unix.MS_REMOUNT|unix.MS_RDONLY, "")
	if r != nil {
		disk := filepath.Join("/proc/self/fd", fmt.Sprint(r.upper))
		_ = unix.Mount("", disk, "", unix.MS_REMOUNT|unix.MS_RDONLY, "")
	}
	unix.Sync()
	how := unix.LINUX_REBOOT_CMD_POWER_OFF
	if reboot {
		how = unix.LINUX_REBOOT_CMD_RESTART
	}
	_ = unix.Reboot(how)
}
