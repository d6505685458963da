package server

import (
	"context"
	"errors"
	"io"
	"net"
	"strconv"
	"time"

	"golang.org/x/sys/unix"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"

	pb "space/agent/agentpb"
	"space/agent/fault"
)

const (
	// How long a host may be silent after the server has ended its direction.
	halfOpenTime = 5 * time.Second
	dialTime     = 10 * time.Second
)

// Tunnel carries one TCP connection to a server in the guest.
func (a *Agent) Tunnel(stream grpc.BidiStreamingServer[pb.TunnelRequest, pb.Chunk]) error {
	first, err := stream.Recv()
	if err != nil {
		return err
	}
	target := first.GetTarget()
	if target == nil || target.Port == 0 || target.Port > 65535 {
		return fault.Invalid("the first message names a port from 1 to 65535")
	}
	conn, err := dialLocal(stream.Context(), target.Port)
	if err != nil {
		return err
	}
	defer conn.Close()
	stop := context.AfterFunc(stream.Context(), func() { conn.Close() })
	defer stop()
	if err := stream.Send(&pb.Chunk{}); err != nil {
		return err
	}
	t := &tunnel{stream: stream, conn: conn, heard: make(chan struct{}, 1), ended: make(chan error, 1)}
	go t.toServer()
	if err := t.toHost(); err != nil {
		return err
	}
	return t.awaitHost()
}

func dialLocal(ctx context.Context, port uint32) (*net.TCPConn, error) {
	dialer := net.Dialer{Timeout: dialTime}
	var failed error
	for _, host := range []string{"127.0.0.1", "::1"} {
		conn, err := dialer.DialContext(ctx, "tcp", net.JoinHostPort(host, strconv.FormatUint(uint64(port), 10)))
		if err == nil {
			return conn.(*net.TCPConn), nil
		}
		if failed == nil {
			failed = err
		}
	}
	text := failed.Error()
	if errors.Is(failed, unix.ECONNREFUSED) {
		text = "nothing listens there"
	}
	return nil, fault.New(codes.Unavailable, "port_closed", "port %d: %s", port, text)
}

type tunnel struct {
	stream grpc.BidiStreamingServer[pb.TunnelRequest, pb.Chunk]
	conn   *net.TCPConn
	heard  chan struct{} // the host sent something
	ended  chan error    // the host has ended its direction, or a write failed
}

func (t *tunnel) toServer() {
	for {
		message, err := t.stream.Recv()
		if err != nil {
			if errors.Is(err, io.EOF) {
				err = nil
			}
			_ = t.conn.CloseWrite()
			t.ended <- err
			return
		}
		select {
		case t.heard <- struct{}{}:
		default:
		}
		if data := message.GetData(); len(data) > 0 {
			if _, err := t.conn.Write(data); err != nil {
				t.ended <- broke(err)
				return
			}
		}
		if message.GetEof() {
			_ = t.conn.CloseWrite()
			t.ended <- nil
			return
		}
	}
}

func broke(err error) error {
	return fault.New(codes.Aborted, "port_closed", "the connection broke: %v", err)
}

func (t *tunnel) toHost() error {
	buf := make([]byte, 32<<10)
	for {
		n, err := t.conn.Read(buf)
		if n > 0 {
			if err := t.stream.Send(&pb.Chunk{Data: buf[:n]}); err != nil {
				return err
			}
		}
		if errors.Is(err, io.EOF) {
			return t.stream.Send(&pb.Chunk{Eof: true})
		}
		if err != nil {
			if ctx := t.stream.Context(); ctx.Err() != nil {
				return ctx.Err()
			}
			return broke(err)
		}
	}
}

func (t *tunnel) awaitHost() error {
	silence := time.NewTimer(halfOpenTime)
	defer silence.Stop()
	for {
		select {
		case <-t.heard:
			silence.Reset(halfOpenTime)
		case <-t.ended:
			return nil // a server that is gone entirely has said all it had to say
		case <-silence.C:
			return nil
		case <-t.stream.Context().Done():
			return t.stream.Context().Err()
		}
	}
}
