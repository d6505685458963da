package process

import (
	"context"
	"errors"
	"os"
	"sync"
	"time"

	"google.golang.org/grpc/codes"

	"space/agent/fault"
)

// input is what a process reads: bytes with positions, so that a repeated write adds nothing.
type input struct {
	turn   sync.Mutex // one writer at a time, in order of arrival
	mu     sync.Mutex
	file   *os.File // nil: there is none
	offset uint64   // bytes that were taken
	closed bool
	isPty  bool
}

func (in *input) close() {
	in.mu.Lock()
	defer in.mu.Unlock()
	if in.file == nil || in.closed {
		return
	}
	in.closed = true
	if !in.isPty {
		in.file.Close()
	}
}

func (in *input) state() (uint64, bool) {
	in.mu.Lock()
	defer in.mu.Unlock()
	return in.offset, in.closed
}

// WriteStdin takes data that starts at a position of the whole input. It blocks while the process
// doesn't read. It gives the next position, and whether the input is closed by now.
func (p *Process) WriteStdin(ctx context.Context, offset uint64, data []byte, eof bool) (uint64, bool, error) {
	in := &p.input
	if in.file == nil {
		return 0, true, fault.New(codes.FailedPrecondition, "no_stdin", "the process %q was started without an input", p.Spec.ID)
	}
	if eof && in.isPty {
		return 0, false, fault.Invalid("a terminal's input has no end: send Ctrl-D as data")
	}
	in.turn.Lock()
	defer in.turn.Unlock()
	next, closed := in.state()
	if offset > next {
		return next, closed, fault.New(codes.Aborted, "offset_mismatch", "the next byte expected is %d, not %d", next, offset)
	}
	if skip := next - offset; skip >= uint64(len(data)) {
		data = nil
	} else {
		data = data[skip:]
	}
	if closed {
		return next, true, nil
	}
	if len(data) > 0 {
		if err := in.write(ctx, data); err != nil {
			return 0, false, err
		}
	}
	if _, closed := in.state(); eof && !closed {
		in.close()
	}
	next, closed = in.state()
	return next, closed, nil
}

func (in *input) write(ctx context.Context, data []byte) error {
	_ = in.file.SetWriteDeadline(time.Time{})
	stop := context.AfterFunc(ctx, func() { _ = in.file.SetWriteDeadline(time.Unix(1, 0)) })
	n, err := in.file.Write(data)
	stop()
	in.mu.Lock()
	in.offset += uint64(n)
	in.mu.Unlock()
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil && errors.Is(err, os.ErrDeadlineExceeded):
		return fault.New(codes.Canceled, "cancelled", "the write was cancelled after %d bytes", n)
	default: // nobody reads it any more
		in.close()
		return nil
	}
}
