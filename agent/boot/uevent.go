package boot

import (
	"errors"
	"fmt"
	"time"

	"golang.org/x/sys/unix"
)

// Uevents hears of devices. Open it before the drivers are loaded, so that nothing is missed.
type Uevents struct {
	fd int
}

// OpenUevents subscribes to the kernel's announcements.
func OpenUevents() (*Uevents, error) {
	fd, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, unix.NETLINK_KOBJECT_UEVENT)
	if err != nil {
		return nil, fmt.Errorf("uevents: %w", err)
	}
	if err := unix.Bind(fd, &unix.SockaddrNetlink{Family: unix.AF_NETLINK, Groups: 1}); err != nil {
		unix.Close(fd)
		return nil, fmt.Errorf("uevents: %w", err)
	}
	return &Uevents{fd: fd}, nil
}

// Close ends the subscription.
func (u *Uevents) Close() { unix.Close(u.fd) }

// Wait blocks until the condition holds, looking again after every announcement.
func (u *Uevents) Wait(what string, limit time.Duration, holds func() bool) error {
	until := time.Now().Add(limit)
	buf := make([]byte, 16<<10)
	for !holds() {
		left := time.Until(until)
		if left <= 0 {
			return fmt.Errorf("%s didn't appear within %s", what, limit)
		}
		ready := []unix.PollFd{{Fd: int32(u.fd), Events: unix.POLLIN}}
		if _, err := unix.Poll(ready, int(left.Milliseconds())+1); err != nil && !errors.Is(err, unix.EINTR) {
			return fmt.Errorf("wait for %s: %w", what, err)
		}
		if ready[0].Revents != 0 {
			// ENOBUFS only means that announcements were lost: the condition is looked at anyway.
			_, _, _ = unix.Recvfrom(u.fd, buf, unix.MSG_DONTWAIT)
		}
	}
	return nil
}
