// Package fault makes the errors that cross the guest link: a gRPC code and a message that begins
// with a reason for programs, as the head of proto/agent.proto lists them.
package fault

import (
	"errors"
	"fmt"
	"io/fs"

	"golang.org/x/sys/unix"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// New makes an error with a code, a reason and a text.
func New(code codes.Code, reason, format string, args ...any) error {
	return status.Error(code, reason+": "+fmt.Sprintf(format, args...))
}

// Invalid says that the request itself is wrong.
func Invalid(format string, args ...any) error {
	return New(codes.InvalidArgument, "invalid_argument", format, args...)
}

// Internal says that the agent failed in a way no caller can mend.
func Internal(format string, args ...any) error {
	return New(codes.Internal, "internal", format, args...)
}

// Path turns an error of a file operation into one for the link. Errors that are one already pass.
func Path(err error, path string) error {
	if err == nil {
		return nil
	}
	if _, ok := status.FromError(err); ok {
		return err
	}
	code, reason := classify(err)
	return New(code, reason, "%s: %s", quote(path), cause(err))
}

func classify(err error) (codes.Code, string) {
	switch {
	case errors.Is(err, unix.ENOENT):
		return codes.NotFound, "file_not_found"
	case errors.Is(err, unix.EEXIST):
		return codes.AlreadyExists, "already_exists"
	case errors.Is(err, unix.EACCES), errors.Is(err, unix.EPERM):
		return codes.PermissionDenied, "permission_denied"
	case errors.Is(err, unix.ENOTDIR):
		return codes.FailedPrecondition, "not_a_directory"
	case errors.Is(err, unix.EISDIR), errors.Is(err, unix.ENXIO), errors.Is(err, unix.ENODEV):
		return codes.FailedPrecondition, "not_a_file"
	case errors.Is(err, unix.ELOOP):
		return codes.FailedPrecondition, "link_loop"
	case errors.Is(err, unix.EBUSY), errors.Is(err, unix.ETXTBSY):
		return codes.FailedPrecondition, "busy"
	case errors.Is(err, unix.ENOTEMPTY):
		return codes.FailedPrecondition, "not_empty"
	case errors.Is(err, unix.ENOSPC), errors.Is(err, unix.EDQUOT):
		return codes.ResourceExhausted, "disk_full"
	case errors.Is(err, unix.EROFS):
		return codes.PermissionDenied, "read_only"
	case errors.Is(err, unix.ENAMETOOLONG):
		return codes.InvalidArgument, "name_too_long"
	case errors.Is(err, unix.EINVAL), errors.Is(err, unix.EXDEV), errors.Is(err, unix.E2BIG),
		errors.Is(err, unix.EFBIG), errors.Is(err, unix.EMLINK), errors.Is(err, unix.EOPNOTSUPP),
		errors.Is(err, unix.ESPIPE):
		return codes.InvalidArgument, "invalid_argument"
	default:
		return codes.Internal, "internal"
	}
}

func cause(err error) string {
	var errno unix.Errno
	if errors.As(err, &errno) {
		return errno.Error()
	}
	var pathError *fs.PathError
	if errors.As(err, &pathError) {
		return pathError.Err.Error()
	}
	return err.Error()
}

func quote(path string) string {
	const most = 512
	if len(path) > most {
		path = path[:most] + "..."
	}
	return fmt.Sprintf("%q", path)
}
