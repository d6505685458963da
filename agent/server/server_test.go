package server_test

import (
	"context"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"

	"space/agent/account"
	pb "space/agent/agentpb"
	"space/agent/process"
	"space/agent/server"
)

var agent *server.Agent

func TestMain(m *testing.M) {
	_ = unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
	accounts := account.Directory{Root: "/"}
	agent = &server.Agent{
		BootID: "boot", Processes: process.NewTable(accounts, nil), Accounts: accounts, Machine: still{},
	}
	os.Exit(m.Run())
}

// still is a machine that nothing is done to.
type still struct{}

func (still) Adopt(*pb.AdoptRequest) error { return nil }
func (still) PowerOff()                    {}

var generation uint64

func dial(t testing.TB) pb.AgentClient {
	t.Helper()
	socket := filepath.Join(t.TempDir(), "s")
	listener, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	grpcServer := agent.Serve()
	go func() { _ = grpcServer.Serve(listener) }()
	t.Cleanup(grpcServer.Stop)
	conn, err := grpc.NewClient("unix:"+socket, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return pb.NewAgentClient(conn)
}

func adopted(t testing.TB) (pb.AgentClient, context.Context) {
	t.Helper()
	client := dial(t)
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	t.Cleanup(cancel)
	generation++
	if _, err := client.Adopt(ctx, &pb.AdoptRequest{Generation: generation, UnixNanos: time.Now().UnixNano()}); err != nil {
		t.Fatal(err)
	}
	return client, ctx
}

func wantFault(t *testing.T, err error, code codes.Code, reason string) {
	t.Helper()
	if status.Code(err) != code || !strings.HasPrefix(status.Convert(err).Message(), reason+": ") {
		t.Fatalf("want %s %s, got %v", code, reason, err)
	}
}

func TestNothingButHelloComesBeforeAdopt(t *testing.T) {
	client := dial(t)
	ctx := context.Background()
	if generation == 0 {
		_, err := client.ListProcesses(ctx, &pb.ListProcessesRequest{})
		wantFault(t, err, codes.FailedPrecondition, "not_adopted")
	}
	if hello, err := client.Hello(ctx, &pb.HelloRequest{}); err != nil || hello.Protocol != server.Protocol {
		t.Fatalf("%v %v", hello, err)
	}
}

func TestAGenerationOnlyGrows(t *testing.T) {
	client, ctx := adopted(t)
	_, err := client.Adopt(ctx, &pb.AdoptRequest{Generation: generation})
	wantFault(t, err, codes.Aborted, "stale_generation")
}

func TestACommandOverTheLink(t *testing.T) {
	client, ctx := adopted(t)
	started, err := client.Start(ctx, &pb.StartRequest{Id: "hi", Argv: []string{"echo", "hi"}})
	if err != nil || started.Process.Pid == 0 {
		t.Fatal(started, err)
	}
	stream, err := client.Output(ctx, &pb.OutputRequest{Id: "hi"})
	if err != nil {
		t.Fatal(err)
	}
	var text string
	var exit *pb.Exit
	for {
		event, err := stream.Recv()
		if err != nil {
			break
		}
		text += string(event.GetStdout())
		if event.GetExit() != nil {
			exit = event.GetExit()
		}
	}
	if text != "hi\n" || exit == nil || exit.Code != 0 {
		t.Fatalf("%q %v", text, exit)
	}
	if _, err := client.Release(ctx, &pb.ReleaseRequest{Id: "hi"}); err != nil {
		t.Fatal(err)
	}
	_, err = client.Release(ctx, &pb.ReleaseRequest{Id: "hi"})
	wantFault(t, err, codes.NotFound, "process_not_found")
}

// follow gives a process's output, its exit and the fault that ended the stream.
func follow(stream pb.Agent_OutputClient) (text string, exit *pb.Exit, err error) {
	for {
		event, err := stream.Recv()
		if err != nil {
			return text, exit, err
		}
		text += string(event.GetStdout())
		if event.GetExit() != nil {
			exit = event.GetExit()
		}
	}
}

func TestOutputStartsItsProcessOnce(t *testing.T) {
	client, ctx := adopted(t)
	mark := filepath.Join(t.TempDir(), "mark")
	request := &pb.OutputRequest{Id: "once", Start: &pb.StartRequest{
		Id: "once", Argv: []string{"sh", "-c", "echo x >> " + mark + "; echo hi"},
	}}
	for range 3 {
		stream, err := client.Output(ctx, request)
		if err != nil {
			t.Fatal(err)
		}
		text, exit, _ := follow(stream)
		if text != "hi\n" || exit == nil || exit.Code != 0 {
			t.Fatalf("%q %v", text, exit)
		}
	}
	if marks, err := os.ReadFile(mark); err != nil || string(marks) != "x\n" {
		t.Fatalf("it ran as often as %q says, %v", marks, err)
	}
	for reason, bad := range map[string]*pb.OutputRequest{
		"command_not_found": {Id: "a", Start: &pb.StartRequest{Id: "a", Argv: []string{"no-such-command"}}},
		"workdir_not_found": {Id: "b", Start: &pb.StartRequest{Id: "b", Argv: []string{"true"}, Cwd: "/nowhere"}},
		"invalid_argument":  {Id: "c", Start: &pb.StartRequest{Id: "d", Argv: []string{"true"}}},
		"process_not_found": {Id: "e"},
	} {
		stream, err := client.Output(ctx, bad)
		if err == nil {
			_, _, err = follow(stream)
		}
		if !strings.HasPrefix(status.Convert(err).Message(), reason+": ") {
			t.Errorf("want %s, got %v", reason, err)
		}
	}
}

func TestWhatHasEndedTakesNoSignalAndNoInput(t *testing.T) {
	client, ctx := adopted(t)
	stream, err := client.Output(ctx, &pb.OutputRequest{Id: "over", Start: &pb.StartRequest{
		Id: "over", Argv: []string{"true"}, Stdin: pb.StdinMode_STDIN_PIPE,
	}})
	if err != nil {
		t.Fatal(err)
	}
	if _, exit, _ := follow(stream); exit == nil {
		t.Fatal("no exit")
	}
	_, err = client.Signal(ctx, &pb.SignalRequest{Id: "over", Signal: 15})
	wantFault(t, err, codes.FailedPrecondition, "process_ended")
}
