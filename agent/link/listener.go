package link

import (
	"bytes"
	"io"
	"net"
	"os"
	"sync"
	"time"
)

// Listener gives one connection after another over a port. A connection begins with a client's
// preface; it ends when the host goes away or when another client's preface comes.
type Listener struct {
	port port
	buf  []byte // for hunting; only Accept uses it

	mu      sync.Mutex
	current *conn
	pending []byte // bytes of the next connection that were read already
	changed chan struct{}
	closed  bool
}

// ListenSerial opens a virtio-serial port.
func ListenSerial(device string) (*Listener, error) {
	serial, err := openSerial(device)
	if err != nil {
		return nil, err
	}
	return listen(serial), nil
}

func listen(p port) *Listener {
	return &Listener{port: p, buf: make([]byte, 4096), changed: make(chan struct{}, 1)}
}

// Accept waits for the next client.
func (l *Listener) Accept() (net.Conn, error) {
	for {
		l.mu.Lock()
		busy, closed := l.current != nil, l.closed
		l.mu.Unlock()
		if closed {
			return nil, net.ErrClosed
		}
		if !busy {
			break
		}
		<-l.changed
	}
	first, err := l.hunt()
	if err != nil {
		return nil, err
	}
	next := &conn{listener: l, first: first}
	l.mu.Lock()
	l.current = next
	l.mu.Unlock()
	return next, nil
}

// hunt reads until a client begins. What an earlier one left behind is thrown away.
func (l *Listener) hunt() ([]byte, error) {
	l.mu.Lock()
	seen := l.pending
	l.pending = nil
	l.mu.Unlock()
	for {
		if at := bytes.Index(seen, []byte(preface)); at >= 0 {
			return append([]byte(nil), seen[at:]...), nil
		}
		if keep := len(preface) - 1; len(seen) > keep {
			seen = seen[len(seen)-keep:]
		}
		n, err := l.port.read(l.buf)
		if err != nil {
			return nil, err
		}
		if n == 0 {
			seen = nil
			if err := l.port.awaitHost(); err != nil {
				return nil, err
			}
			continue
		}
		seen = append(append([]byte(nil), seen...), l.buf[:n]...)
	}
}

// Close ends the listener and its connection.
func (l *Listener) Close() error {
	l.mu.Lock()
	l.closed = true
	l.mu.Unlock()
	l.wake()
	return l.port.close()
}

// Addr names the port.
func (l *Listener) Addr() net.Addr { return address{} }

func (l *Listener) wake() {
	select {
	case l.changed <- struct{}{}:
	default:
	}
}

// end makes a connection the past one, once, and lets Accept look for the next.
func (l *Listener) end(c *conn, pending []byte, reading bool) {
	l.mu.Lock()
	if c.ending {
		if len(pending) > 0 {
			l.pending = pending
		}
		l.mu.Unlock()
		return
	}
	c.ending = true
	l.mu.Unlock()
	// Who still reads or writes must be out before the port is anyone else's.
	l.port.interrupt()
	c.writing.Lock()
	c.over = true
	c.writing.Unlock()
	if !reading {
		c.reading.Lock()
		c.reading.Unlock() //nolint:staticcheck // waiting is the purpose
	}
	l.port.resume()
	l.mu.Lock()
	l.current = nil
	if len(pending) > 0 {
		l.pending = pending
	}
	l.mu.Unlock()
	l.wake()
}

type conn struct {
	listener *Listener
	ending   bool // guarded by the listener's lock

	reading sync.Mutex
	first   []byte
	frames  framing

	writing sync.Mutex
	over    bool
}

func (c *conn) isEnding() bool {
	c.listener.mu.Lock()
	defer c.listener.mu.Unlock()
	return c.ending
}

func (c *conn) Read(into []byte) (int, error) {
	c.reading.Lock()
	defer c.reading.Unlock()
	if c.isEnding() {
		return 0, io.EOF
	}
	var n int
	if len(c.first) > 0 {
		n = copy(into, c.first)
		c.first = c.first[n:]
	} else {
		var err error
		n, err = c.listener.port.read(into)
		if n == 0 {
			c.listener.end(c, nil, true)
			if err == nil {
				err = io.EOF
			}
			return 0, err
		}
		if c.isEnding() {
			c.listener.end(c, append([]byte(nil), into[:n]...), true)
			return 0, io.EOF
		}
	}
	if at := c.frames.scan(into[:n]); at >= 0 {
		c.listener.end(c, append([]byte(nil), into[at:n]...), true)
		if at == 0 {
			return 0, io.EOF
		}
		return at, nil
	}
	return n, nil
}

func (c *conn) Write(data []byte) (int, error) {
	c.writing.Lock()
	defer c.writing.Unlock()
	if c.over {
		return 0, os.ErrClosed
	}
	if err := c.listener.port.write(data); err != nil {
		return 0, err
	}
	return len(data), nil
}

// Close ends the connection for this side. The host may not notice: the port stays open.
func (c *conn) Close() error {
	c.listener.end(c, nil, false)
	return nil
}

func (c *conn) LocalAddr() net.Addr              { return address{} }
func (c *conn) RemoteAddr() net.Addr             { return address{} }
func (c *conn) SetDeadline(time.Time) error      { return nil }
func (c *conn) SetReadDeadline(time.Time) error  { return nil }
func (c *conn) SetWriteDeadline(time.Time) error { return nil }

type address struct{}

func (address) Network() string { return "virtio-serial" }
func (address) String() string  { return "host" }
