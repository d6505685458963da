package link

import (
	"context"
	"io"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/health"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
)

// wire is a port whose host side tests plug in and out. unplugged silently, only new bytes tell.
type wire struct {
	mu       sync.Mutex
	changed  *sync.Cond
	host     net.Conn // the guest's end of it
	stopped  bool
	closed   bool
	attached int
}

func newWire() *wire {
	w := &wire{}
	w.changed = sync.NewCond(&w.mu)
	return w
}

// plug gives the host's end of a new connection; the old one stays as it is when silent.
func (w *wire) plug() net.Conn {
	guest, host := socketPair()
	w.mu.Lock()
	old := w.host
	w.host = guest
	w.attached++
	w.mu.Unlock()
	w.changed.Broadcast()
	if old != nil {
		_ = old.SetDeadline(time.Unix(1, 0))
	}
	return host
}

func (w *wire) unplug() {
	w.mu.Lock()
	old := w.host
	w.host = nil
	w.mu.Unlock()
	if old != nil {
		_ = old.SetDeadline(time.Unix(1, 0))
	}
}

func (w *wire) read(into []byte) (int, error) {
	for {
		w.mu.Lock()
		if w.closed || w.stopped {
			w.mu.Unlock()
			return 0, net.ErrClosed
		}
		host, before := w.host, w.attached
		w.mu.Unlock()
		if host == nil {
			return 0, nil
		}
		n, err := host.Read(into)
		w.mu.Lock()
		replaced := w.attached != before
		w.mu.Unlock()
		if n > 0 {
			return n, nil
		}
		if err != nil && !replaced {
			w.mu.Lock()
			if w.host == host && !w.stopped {
				w.host = nil
			}
			w.mu.Unlock()
			return 0, nil
		}
	}
}

func (w *wire) write(data []byte) error {
	w.mu.Lock()
	host := w.host
	w.mu.Unlock()
	if host == nil {
		return net.ErrClosed
	}
	_, err := host.Write(data)
	return err
}

func (w *wire) interrupt() {
	w.mu.Lock()
	w.stopped = true
	host := w.host
	w.mu.Unlock()
	if host != nil {
		_ = host.SetDeadline(time.Unix(1, 0))
	}
}

func (w *wire) resume() {
	w.mu.Lock()
	w.stopped = false
	host := w.host
	w.mu.Unlock()
	if host != nil {
		_ = host.SetDeadline(time.Time{})
	}
}

func (w *wire) awaitHost() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	for w.host == nil && !w.closed {
		w.changed.Wait()
	}
	if w.closed {
		return net.ErrClosed
	}
	return nil
}

func (w *wire) close() error {
	w.mu.Lock()
	w.closed = true
	w.mu.Unlock()
	w.changed.Broadcast()
	w.unplug()
	return nil
}

func socketPair() (net.Conn, net.Conn) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		panic(err)
	}
	defer listener.Close()
	got := make(chan net.Conn)
	go func() { c, _ := listener.Accept(); got <- c }()
	host, err := net.Dial("tcp", listener.Addr().String())
	if err != nil {
		panic(err)
	}
	return <-got, host
}

func serve(t *testing.T) *wire {
	t.Helper()
	w := newWire()
	listener := listen(w)
	server := grpc.NewServer(grpc.InitialWindowSize(1<<20), grpc.InitialConnWindowSize(1<<20))
	healthpb.RegisterHealthServer(server, health.NewServer())
	go func() { _ = server.Serve(listener) }()
	t.Cleanup(server.Stop)
	return w
}

func check(t *testing.T, host net.Conn) {
	t.Helper()
	// Fixed windows: no pings whose answers might be under way when the host is replaced.
	client, err := grpc.NewClient("passthrough:///host", grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithInitialWindowSize(1<<20), grpc.WithInitialConnWindowSize(1<<20),
		grpc.WithContextDialer(func(context.Context, string) (net.Conn, error) { return host, nil }))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { client.Close() })
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	if _, err := healthpb.NewHealthClient(client).Check(ctx, &healthpb.HealthCheckRequest{}); err != nil {
		t.Fatal(err)
	}
}

func TestAHostThatComesBackIsServed(t *testing.T) {
	w := serve(t)
	for range 5 {
		check(t, w.plug())
		w.unplug()
	}
}

func TestANewClientEndsTheOldConnectionWithoutAnyHangUp(t *testing.T) {
	w := serve(t)
	for range 5 {
		check(t, w.plug())
	}
}

func TestAnEndInTheMiddleOfAFrame(t *testing.T) {
	w := serve(t)
	host := w.plug()
	check(t, host)
	// A DATA frame of 1000 bytes of which 10 come.
	_, _ = io.WriteString(host, "\x00\x03\xe8\x00\x00\x00\x00\x00\x01 half")
	time.Sleep(20 * time.Millisecond)
	check(t, w.plug())
}

func TestAPrefaceInContentIsContent(t *testing.T) {
	var f framing
	if f.scan([]byte(preface)) != -1 {
		t.Fatal("the first preface is the connection's own")
	}
	body := "x" + preface + strings.Repeat("y", 75)
	frame := "\x00\x00" + string(rune(len(body))) + "\x00\x00\x00\x00\x00\x01" + body
	if at := f.scan([]byte(frame)); at != -1 {
		t.Fatalf("at %d", at)
	}
	if at := f.scan([]byte("\x00\x00\x02\x00\x00\x00\x00\x00\x01ab" + preface)); at != 11 {
		t.Fatalf("at %d", at)
	}
}
