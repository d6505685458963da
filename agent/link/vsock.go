package link

import (
	"errors"
	"fmt"
	"net"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// vsockListener takes connections from the host alone: user code in the guest may try the port too.
type vsockListener struct {
	file *os.File
	raw  syscall.RawConn
}

// ListenVsock listens on a port of AF_VSOCK.
func ListenVsock(port uint32) (net.Listener, error) {
	fd, err := unix.Socket(unix.AF_VSOCK, unix.SOCK_STREAM|unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("vsock: %w", err)
	}
	if err := unix.Bind(fd, &unix.SockaddrVM{CID: unix.VMADDR_CID_ANY, Port: port}); err != nil {
		unix.Close(fd)
		return nil, fmt.Errorf("vsock port %d: %w", port, err)
	}
	if err := unix.Listen(fd, 16); err != nil {
		unix.Close(fd)
		return nil, fmt.Errorf("vsock port %d: %w", port, err)
	}
	file := os.NewFile(uintptr(fd), "vsock")
	raw, err := file.SyscallConn()
	if err != nil {
		file.Close()
		return nil, err
	}
	return &vsockListener{file: file, raw: raw}, nil
}

func (l *vsockListener) Accept() (net.Conn, error) {
	for {
		var fd int
		var peer unix.Sockaddr
		var err error
		if failed := l.raw.Read(func(on uintptr) bool {
			fd, peer, err = unix.Accept4(int(on), unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC)
			return !errors.Is(err, unix.EAGAIN)
		}); failed != nil {
			return nil, net.ErrClosed
		}
		if errors.Is(err, unix.EINTR) || errors.Is(err, unix.ECONNABORTED) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("vsock accept: %w", err)
		}
		if from, ok := peer.(*unix.SockaddrVM); !ok || from.CID != unix.VMADDR_CID_HOST {
			unix.Close(fd)
			continue
		}
		return vsockConn{os.NewFile(uintptr(fd), "vsock")}, nil
	}
}

func (l *vsockListener) Close() error   { return l.file.Close() }
func (l *vsockListener) Addr() net.Addr { return address{} }

// vsockConn is a file with the rest of a connection's methods.
type vsockConn struct {
	*os.File
}

func (vsockConn) LocalAddr() net.Addr  { return address{} }
func (vsockConn) RemoteAddr() net.Addr { return address{} }
