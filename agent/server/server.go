// Package server answers the calls of proto/agent.proto.
package server

import (
	"context"
	"math"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/status"

	"space/agent/account"
	pb "space/agent/agentpb"
	"space/agent/fault"
	"space/agent/process"
)

const (
	// Protocol is the version of the contract.
	Protocol = 1

	maxMessage   = 1 << 20
	streamWindow = 1 << 20
	linkWindow   = 4 << 20
	writeBuffer  = 256 << 10
	readBuffer   = 64 << 10
	maxStreams   = 8192
	// MaxChunk is the most bytes of one message.
	MaxChunk = 64 << 10
	maxEnv   = 4096
)

// Machine is what the agent does to the machine it runs on. As an ordinary process it does nothing.
type Machine interface {
	// Adopt makes the machine its own.
	Adopt(request *pb.AdoptRequest) error
	// PowerOff ends the machine; it doesn't return when it could.
	PowerOff()
}

// Agent is the guest's side of the link.
type Agent struct {
	pb.UnimplementedAgentServer

	Version   string
	BootID    string
	Kernel    string
	Processes *process.Table
	Accounts  account.Directory
	Machine   Machine

	adopting   sync.Mutex
	mu         sync.Mutex
	generation uint64

	watches  counter
	named    named
	shutdown sync.Once
}

// Serve makes a gRPC server for the agent, tuned for one host over one quick byte stream.
func (a *Agent) Serve() *grpc.Server {
	server := grpc.NewServer(
		grpc.MaxRecvMsgSize(maxMessage),
		grpc.MaxSendMsgSize(maxMessage),
		grpc.InitialWindowSize(streamWindow),
		grpc.InitialConnWindowSize(linkWindow),
		grpc.WriteBufferSize(writeBuffer),
		grpc.ReadBufferSize(readBuffer),
		grpc.MaxConcurrentStreams(maxStreams),
		// A paused guest answers no ping: neither side may take silence for death.
		grpc.KeepaliveParams(keepalive.ServerParameters{Time: math.MaxInt64, Timeout: math.MaxInt64}),
		grpc.KeepaliveEnforcementPolicy(keepalive.EnforcementPolicy{MinTime: time.Second, PermitWithoutStream: true}),
		grpc.ConnectionTimeout(10*time.Minute),
		grpc.UnaryInterceptor(a.unary),
		grpc.StreamInterceptor(a.stream),
	)
	pb.RegisterAgentServer(server, a)
	return server
}

func (a *Agent) ready(method string) error {
	if strings.HasSuffix(method, "/Hello") || strings.HasSuffix(method, "/Adopt") {
		return nil
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.generation == 0 {
		return fault.New(codes.FailedPrecondition, "not_adopted", "the first call is Adopt")
	}
	return nil
}

func (a *Agent) unary(ctx context.Context, request any, info *grpc.UnaryServerInfo, next grpc.UnaryHandler) (any, error) {
	if err := a.ready(info.FullMethod); err != nil {
		return nil, err
	}
	answer, err := next(ctx, request)
	return answer, reported(err)
}

func (a *Agent) stream(server any, stream grpc.ServerStream, info *grpc.StreamServerInfo, next grpc.StreamHandler) error {
	if err := a.ready(info.FullMethod); err != nil {
		return err
	}
	return reported(next(server, stream))
}

// reported gives every error a code and a reason.
func reported(err error) error {
	if err == nil {
		return nil
	}
	if _, ok := status.FromError(err); ok {
		return err
	}
	if context.Canceled == err || context.DeadlineExceeded == err {
		return fault.New(codes.Canceled, "cancelled", "%v", err)
	}
	return fault.Internal("%v", err)
}

// Hello says who answers.
func (a *Agent) Hello(context.Context, *pb.HelloRequest) (*pb.HelloReply, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	return &pb.HelloReply{
		AgentVersion: a.Version, Protocol: Protocol, BootId: a.BootID,
		Generation: a.generation, KernelRelease: a.Kernel,
	}, nil
}

// Adopt makes the guest the host's, and its own.
func (a *Agent) Adopt(_ context.Context, request *pb.AdoptRequest) (*pb.AdoptReply, error) {
	switch {
	case request.Generation == 0:
		return nil, fault.Invalid("a generation begins at 1")
	case len(request.Hostname) > 64:
		return nil, fault.Invalid("a host name has at most 64 characters")
	case len(request.Env) > maxEnv:
		return nil, fault.Invalid("env has %d entries, at most %d are taken", len(request.Env), maxEnv)
	}
	if err := process.CheckEnv(request.Env); err != nil {
		return nil, err
	}
	a.adopting.Lock()
	defer a.adopting.Unlock()
	a.mu.Lock()
	last := a.generation
	a.mu.Unlock()
	if request.Generation <= last {
		return nil, fault.New(codes.Aborted, "stale_generation", "generation %d isn't larger than the last one, %d", request.Generation, last)
	}
	if err := a.Machine.Adopt(request); err != nil {
		return nil, fault.Internal("adopt: %v", err)
	}
	a.Processes.SetDefaults(process.Defaults{
		Env: request.Env, User: request.DefaultUser, Workdir: request.DefaultWorkdir,
	})
	a.mu.Lock()
	a.generation = request.Generation
	a.mu.Unlock()
	return &pb.AdoptReply{BootId: a.BootID, UnixNanos: time.Now().UnixNano(), Processes: a.list()}, nil
}

// Sync writes all that is dirty.
func (a *Agent) Sync(context.Context, *pb.SyncRequest) (*pb.SyncReply, error) {
	unix.Sync()
	return &pb.SyncReply{}, nil
}

const (
	maxGrace = 10 * time.Minute
	// The answer's way out of the guest, before the link ends with the machine.
	answerTime = 20 * time.Millisecond
)

// Shutdown answers, then ends all processes and the machine.
func (a *Agent) Shutdown(_ context.Context, request *pb.ShutdownRequest) (*pb.ShutdownReply, error) {
	grace := min(time.Duration(request.GraceMillis)*time.Millisecond, maxGrace)
	a.shutdown.Do(func() { time.AfterFunc(answerTime, func() { a.end(grace) }) })
	return &pb.ShutdownReply{}, nil
}

func (a *Agent) end(grace time.Duration) {
	a.Processes.SignalAll(unix.SIGTERM)
	a.Processes.SignalAll(unix.SIGCONT)
	until := time.Now().Add(grace)
	for a.Processes.Living() > 0 && time.Now().Before(until) {
		time.Sleep(10 * time.Millisecond)
	}
	a.Processes.SignalAll(unix.SIGKILL)
	a.Machine.PowerOff()
}

// counter bounds how many of something there are.
type counter struct {
	mu   sync.Mutex
	used int
}

func (c *counter) take(most int) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.used >= most {
		return false
	}
	c.used++
	return true
}

func (c *counter) release() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.used--
}
