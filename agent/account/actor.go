package account

import (
	"runtime"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Do runs a file operation with the user's rights: on a thread of its own with the user's fsuid, fsgid
// and groups, so that the kernel decides what is allowed and what is made belongs to the user.
//
// Opened files keep the rights they were opened with; only opening, making and looking need Do.
func (a Account) Do(operation func() error) error {
	if a.UID == 0 || unix.Geteuid() != 0 {
		return operation()
	}
	runtime.LockOSThread()
	mine, err := unix.Getgroups()
	if err == nil {
		err = setThreadGroups(a.Groups)
	}
	if err != nil {
		runtime.UnlockOSThread()
		return err
	}
	// Neither call reports failure; both are checked by asking again.
	_ = setFsID(unix.SYS_SETFSGID, a.GID)
	_ = setFsID(unix.SYS_SETFSUID, a.UID)
	taken := setFsID(unix.SYS_SETFSUID, a.UID) == a.UID && setFsID(unix.SYS_SETFSGID, a.GID) == a.GID
	if taken {
		err = operation()
	} else {
		err = unix.EPERM
	}
	_ = setFsID(unix.SYS_SETFSUID, 0)
	_ = setFsID(unix.SYS_SETFSGID, 0)
	back := setFsID(unix.SYS_SETFSUID, 0) == 0 && setFsID(unix.SYS_SETFSGID, 0) == 0
	own := make([]uint32, len(mine))
	for i, gid := range mine {
		own[i] = uint32(gid)
	}
	if setThreadGroups(own) == nil && back {
		runtime.UnlockOSThread() // else the thread, which isn't root's, ends with this goroutine
	}
	return err
}

func setFsID(call uintptr, id uint32) uint32 {
	previous, _, _ := unix.RawSyscall(call, uintptr(id), 0, 0)
	return uint32(previous)
}

// setThreadGroups is for this thread alone, unlike the one of package syscall.
func setThreadGroups(groups []uint32) error {
	var first unsafe.Pointer
	if len(groups) > 0 {
		first = unsafe.Pointer(&groups[0])
	}
	if _, _, errno := unix.RawSyscall(unix.SYS_SETGROUPS, uintptr(len(groups)), uintptr(first), 0); errno != 0 {
		return errno
	}
	return nil
}
