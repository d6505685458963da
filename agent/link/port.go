// Package link carries the byte stream between the host and the guest.
package link

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// port is one end of a stream whose other end comes and goes.
type port interface {
	// read blocks for bytes; 0 without an error means that the host is away.
	read(into []byte) (int, error)
	// write blocks until all is written, or interrupt was called.
	write(data []byte) error
	// interrupt ends the reads and writes under way; resume allows new ones.
	interrupt()
	resume()
	// awaitHost blocks until the host is there.
	awaitHost() error
	close() error
}

// FindPort gives the device of the virtio-serial port with a name, "" when there is none (yet).
func FindPort(name string) string {
	files, _ := filepath.Glob("/sys/class/virtio-ports/*/name")
	for _, file := range files {
		if text, err := os.ReadFile(file); err == nil && strings.TrimSpace(string(text)) == name {
			return "/dev/" + filepath.Base(filepath.Dir(file))
		}
	}
	return ""
}

// serialPort is a virtio-serial port. Its driver wakes pollers when the host comes or goes, and the Go
// runtime polls edge-triggered, so waiting costs nothing: no spinning on the standing POLLHUP.
type serialPort struct {
	file *os.File
	raw  syscall.RawConn
}

func openSerial(device string) (*serialPort, error) {
	fd, err := unix.Open(device, unix.O_RDWR|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("open %s: %w", device, err)
	}
	file := os.NewFile(uintptr(fd), device)
	raw, err := file.SyscallConn()
	if err != nil {
		file.Close()
		return nil, err
	}
	return &serialPort{file: file, raw: raw}, nil
}

func (p *serialPort) read(into []byte) (n int, err error) {
	failed := p.raw.Read(func(fd uintptr) bool {
		for {
			n, err = unix.Read(int(fd), into)
			if !errors.Is(err, unix.EINTR) {
				return !errors.Is(err, unix.EAGAIN)
			}
		}
	})
	if failed != nil {
		return 0, failed
	}
	if err != nil {
		return 0, err
	}
	return n, nil
}

func (p *serialPort) write(data []byte) error {
	_, err := p.file.Write(data)
	return err
}

func (p *serialPort) interrupt() { _ = p.file.SetDeadline(time.Unix(1, 0)) }

func (p *serialPort) resume() { _ = p.file.SetDeadline(time.Time{}) }

// awaitHost waits for the port to be writable: the driver says so when the host has connected.
func (p *serialPort) awaitHost() error {
	return p.raw.Write(func(fd uintptr) bool {
		state := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLOUT}}
		for {
			_, err := unix.Poll(state, 0)
			if !errors.Is(err, unix.EINTR) {
				return err != nil || state[0].Revents&unix.POLLHUP == 0
			}
		}
	})
}

func (p *serialPort) close() error { return p.file.Close() }
