package server_test

import (
	"errors"
	"io"
	"net"
	"testing"

	"google.golang.org/grpc/codes"

	pb "space/agent/agentpb"
)

// Behaviour 41, the agent's part.
func TestATunnelCarriesBothDirectionsAndTheirEnds(t *testing.T) {
	client, ctx := adopted(t)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	heard := make(chan string, 1)
	go func() {
		conn, err := listener.Accept()
		if err != nil {
			return
		}
		_, _ = io.WriteString(conn, "hello")
		_ = conn.(*net.TCPConn).CloseWrite()
		all, _ := io.ReadAll(conn)
		heard <- string(all)
		conn.Close()
	}()
	port := uint32(listener.Addr().(*net.TCPAddr).Port)
	stream, err := client.Tunnel(ctx)
	if err != nil {
		t.Fatal(err)
	}
	send := func(request *pb.TunnelRequest) {
		t.Helper()
		if err := stream.Send(request); err != nil {
			t.Fatal(err)
		}
	}
	send(&pb.TunnelRequest{Part: &pb.TunnelRequest_Target{Target: &pb.TunnelTarget{Port: port}}})
	text := ""
	for {
		chunk, err := stream.Recv()
		if err != nil {
			t.Fatal(err)
		}
		if text += string(chunk.Data); chunk.Eof {
			break
		}
	}
	send(&pb.TunnelRequest{Part: &pb.TunnelRequest_Data{Data: []byte("still here")}})
	send(&pb.TunnelRequest{Part: &pb.TunnelRequest_Eof{Eof: true}})
	if _, err := stream.Recv(); !errors.Is(err, io.EOF) {
		t.Fatalf("got %v", err)
	}
	if got := <-heard; got != "still here" || text != "hello" {
		t.Fatalf("%q %q", got, text)
	}
	listener.Close()
	refused, err := client.Tunnel(ctx)
	if err != nil {
		t.Fatal(err)
	}
	_ = refused.Send(&pb.TunnelRequest{Part: &pb.TunnelRequest_Target{Target: &pb.TunnelTarget{Port: port}}})
	_, err = refused.Recv()
	wantFault(t, err, codes.Unavailable, "port_closed")
}
