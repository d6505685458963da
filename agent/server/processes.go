package server

import (
	"context"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"

	pb "space/agent/agentpb"
	"space/agent/fault"
	"space/agent/process"
)

// Start starts a process, once per id.
func (a *Agent) Start(_ context.Context, request *pb.StartRequest) (*pb.StartReply, error) {
	if request.TimeoutMillis > uint64(process.MaxTimeout/time.Millisecond) {
		return nil, fault.Invalid("a timeout is at most %s", process.MaxTimeout)
	}
	spec := process.Spec{
		ID: request.Id, Argv: request.Argv, Env: request.Env, Cwd: request.Cwd, User: request.User,
		Stdin:   request.Stdin == pb.StdinMode_STDIN_PIPE,
		Timeout: time.Duration(request.TimeoutMillis) * time.Millisecond,
		Tag:     request.Tag, KillTreeAtExit: request.KillTreeAtExit,
	}
	if request.Pty != nil {
		spec.Pty = &process.Size{Cols: request.Pty.Cols, Rows: request.Pty.Rows}
	}
	started, existed, err := a.Processes.Start(spec)
	if err != nil {
		return nil, err
	}
	return &pb.StartReply{Process: describe(started), Existed: existed}, nil
}

// Output follows a process, which it starts first when asked to.
func (a *Agent) Output(request *pb.OutputRequest, stream grpc.ServerStreamingServer[pb.OutputEvent]) error {
	if request.Start != nil {
		if request.Start.Id != request.Id {
			return fault.Invalid("the process to start is %q, that to follow %q", request.Start.Id, request.Id)
		}
		if _, err := a.Start(stream.Context(), request.Start); err != nil {
			return err
		}
	}
	p, err := a.Processes.Get(request.Id)
	if err != nil {
		return err
	}
	return p.Output(stream.Context(), request.AfterSeq, func(event process.Event) error {
		return stream.Send(wire(p, event))
	})
}

func wire(p *process.Process, event process.Event) *pb.OutputEvent {
	out := &pb.OutputEvent{Seq: event.Seq, UnixMillis: event.Millis}
	switch event.Kind {
	case process.KindStarted:
		out.Event = &pb.OutputEvent_Started{Started: &pb.Started{Pid: uint32(p.Pid)}}
	case process.KindStdout:
		out.Event = &pb.OutputEvent_Stdout{Stdout: event.Data}
	case process.KindStderr:
		out.Event = &pb.OutputEvent_Stderr{Stderr: event.Data}
	case process.KindPty:
		out.Event = &pb.OutputEvent_Pty{Pty: event.Data}
	case process.KindGap:
		out.Event = &pb.OutputEvent_Gap{Gap: &pb.Gap{FirstSeq: event.FirstSeq, Bytes: event.Missing}}
	case process.KindExit:
		out.Event = &pb.OutputEvent_Exit{Exit: wireExit(p.Exit())}
	}
	return out
}

func wireExit(exit process.Exit) *pb.Exit {
	return &pb.Exit{
		Code: int32(exit.Code), Signal: uint32(exit.Signal), CoreDumped: exit.CoreDumped, TimedOut: exit.TimedOut,
	}
}

func describe(p *process.Process) *pb.Process {
	now := p.Snapshot()
	described := &pb.Process{
		Id: p.Spec.ID, Pid: uint32(p.Pid), Argv: p.Spec.Argv, Env: p.Spec.Env, Cwd: p.Cwd, User: p.User,
		Tag: p.Spec.Tag, Pty: p.Spec.Pty != nil, StartedUnixMillis: p.Started.UnixMilli(),
		LastSeq: now.LastSeq, StdinOffset: now.Stdin, TreeSize: uint32(now.Tree),
	}
	if !now.Running {
		described.State = pb.ProcessState_PROCESS_EXITED
		described.Exit = wireExit(now.Exit)
	}
	return described
}

// maxListBytes keeps a list below the largest message. Processes beyond it are named by id,
// pid and state alone.
const maxListBytes = maxMessage / 4

func (a *Agent) list() []*pb.Process {
	all := a.Processes.List()
	described := make([]*pb.Process, 0, len(all))
	size := 0
	for _, p := range all {
		entry := describe(p)
		if size += proto.Size(entry); size > maxListBytes {
			entry.Argv, entry.Env, entry.Tag, entry.Cwd = nil, nil, "", ""
		}
		described = append(described, entry)
	}
	return described
}

// WriteStdin gives a process input.
func (a *Agent) WriteStdin(ctx context.Context, request *pb.WriteStdinRequest) (*pb.WriteStdinReply, error) {
	p, err := a.Processes.Get(request.Id)
	if err != nil {
		return nil, err
	}
	next, closed, err := p.WriteStdin(ctx, request.Offset, request.Data, request.Eof)
	if err != nil {
		return nil, err
	}
	return &pb.WriteStdinReply{NextOffset: next, Closed: closed}, nil
}

// Signal signals a process, its tree or its terminal's foreground.
func (a *Agent) Signal(_ context.Context, request *pb.SignalRequest) (*pb.SignalReply, error) {
	p, err := a.Processes.Get(request.Id)
	if err != nil {
		return nil, err
	}
	scope := process.ScopeProcess
	switch request.Scope {
	case pb.SignalScope_SIGNAL_PROCESS:
	case pb.SignalScope_SIGNAL_TREE:
		scope = process.ScopeTree
	case pb.SignalScope_SIGNAL_FOREGROUND:
		scope = process.ScopeForeground
	default:
		return nil, fault.Invalid("unknown scope %d", request.Scope)
	}
	if err := p.Signal(request.Signal, scope); err != nil {
		return nil, err
	}
	return &pb.SignalReply{}, nil
}

// Resize changes a terminal's size.
func (a *Agent) Resize(_ context.Context, request *pb.ResizeRequest) (*pb.ResizeReply, error) {
	p, err := a.Processes.Get(request.Id)
	if err != nil {
		return nil, err
	}
	if err := p.Resize(process.Size{Cols: request.GetSize().GetCols(), Rows: request.GetSize().GetRows()}); err != nil {
		return nil, err
	}
	return &pb.ResizeReply{}, nil
}

// ListProcesses gives all that are known.
func (a *Agent) ListProcesses(context.Context, *pb.ListProcessesRequest) (*pb.ListProcessesReply, error) {
	return &pb.ListProcessesReply{Processes: a.list()}, nil
}

// Release forgets an ended process.
func (a *Agent) Release(_ context.Context, request *pb.ReleaseRequest) (*pb.ReleaseReply, error) {
	if err := a.Processes.Release(request.Id); err != nil {
		return nil, err
	}
	return &pb.ReleaseReply{}, nil
}
