package main

import (
	"bytes"
	"fmt"
	"io"
	"net"
	"strconv"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

const (
	vsockConnectionsMax = 1023
	commandBytesMax     = 32
	commandBytesMin     = 10
	connectWait         = 2 * time.Second
	firstHostPort       = 1 << 30
)

// guestConn is a connection into the guest.
type guestConn interface {
	io.ReadWriteCloser
	CloseWrite() error
}

// vsock is the host's side of the device: a socket on which hosts ask for ports of the guest.
type vsock struct {
	machine  *machine
	listener *net.UnixListener

	mu    sync.Mutex
	next  uint32
	conns map[*vsockConn]bool
}

type vsockConn struct {
	host  *net.UnixConn
	guest guestConn
}

func listenVsock(m *machine, path string) (*vsock, error) {
	listener, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	if err != nil {
		return nil, err
	}
	listener.SetUnlinkOnClose(false)
	v := &vsock{machine: m, listener: listener, next: firstHostPort, conns: map[*vsockConn]bool{}}
	go v.accept()
	return v, nil
}

func (v *vsock) close() { v.listener.Close() }

func (v *vsock) accept() {
	for {
		conn, err := v.listener.AcceptUnix()
		if err != nil {
			return
		}
		go v.serve(conn)
	}
}

// reset ends every connection, as a guest does that runs again after a snapshot.
func (v *vsock) reset() {
	v.mu.Lock()
	all := v.conns
	v.conns = map[*vsockConn]bool{}
	v.mu.Unlock()
	for c := range all {
		c.host.Close()
		if c.guest != nil {
			c.guest.Close()
		}
	}
}

func (v *vsock) serve(host *net.UnixConn) {
	c := &vsockConn{host: host}
	v.mu.Lock()
	room := len(v.conns) < vsockConnectionsMax
	if room {
		v.conns[c] = true
	}
	v.mu.Unlock()
	defer func() {
		host.Close()
		v.mu.Lock()
		delete(v.conns, c)
		v.mu.Unlock()
	}()
	if !room {
		return
	}
	port, ok := readCommand(host)
	if !ok {
		return
	}
	settings := readSettings()
	countCall("CONNECT")
	if settings.faults.strike("CONNECT", false, v.machine.log).drop {
		return
	}
	guest, err := v.connect(port)
	if err != nil {
		return
	}
	defer guest.Close()
	v.mu.Lock()
	_, there := v.conns[c]
	c.guest = guest
	hostPort := v.next
	v.next++
	v.mu.Unlock()
	if !there {
		return
	}
	if settings.faults.strike("CONNECT", true, v.machine.log).drop {
		return
	}
	if _, err := fmt.Fprintf(host, "OK %d\n", hostPort); err != nil {
		return
	}
	v.machine.metrics.vsockAdded.Add(1)
	v.carry(host, guest)
	v.machine.metrics.vsockRemoved.Add(1)
}

// connect asks the guest; one that is paused answers only when it runs again, if that is soon enough.
func (v *vsock) connect(port uint32) (guestConn, error) {
	deadline := time.Now().Add(connectWait)
	for v.machine.current() != "Running" {
		if time.Now().After(deadline) || v.machine.current() == "Not started" {
			return nil, unix.ETIMEDOUT
		}
		time.Sleep(time.Millisecond)
	}
	v.machine.mu.Lock()
	running := v.machine.guest
	v.machine.mu.Unlock()
	return running.dial(port)
}

// carry copies both ways until both are at their end; a side that ends closes the other's half.
func (v *vsock) carry(host *net.UnixConn, guest guestConn) {
	toGuest := make(chan struct{})
	go func() {
		n, _ := io.Copy(guest, host)
		v.machine.metrics.vsockIn.Add(n)
		_ = guest.CloseWrite()
		close(toGuest)
	}()
	n, _ := io.Copy(host, guest)
	v.machine.metrics.vsockOut.Add(n)
	_ = host.CloseWrite()
	// Who said goodbye in the guest isn't listened to for ever.
	select {
	case <-toGuest:
	case <-time.After(connectWait):
	}
}

// readCommand takes "CONNECT <port>\n" and not a byte more. All of it has to be there at once.
func readCommand(host *net.UnixConn) (uint32, bool) {
	raw, err := host.SyscallConn()
	if err != nil {
		return 0, false
	}
	var command []byte
	failed := raw.Read(func(fd uintptr) bool {
		buffer := make([]byte, commandBytesMin)
		n, err := unix.Read(int(fd), buffer)
		if err == syscall.EAGAIN {
			return false
		}
		if err != nil || n < commandBytesMin {
			return true
		}
		command = buffer
		for len(command) < commandBytesMax && !bytes.HasSuffix(command, []byte("\n")) {
			one := make([]byte, 1)
			if n, err := unix.Read(int(fd), one); err != nil || n == 0 {
				return true
			}
			command = append(command, one[0])
		}
		return true
	})
	words := bytes.Fields(command)
	if failed != nil || !bytes.HasSuffix(command, []byte("\n")) || len(words) != 2 || !bytes.EqualFold(words[0], []byte("CONNECT")) {
		return 0, false
	}
	port, err := strconv.ParseUint(string(words[1]), 10, 32)
	return uint32(port), err == nil
}
