package fault

import (
	"io/fs"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
	"google.golang.org/grpc/status"
)

// What a caller asks of a file may be refused, and is then no fault of the agent.
func TestRefusalsOfTheKernelAreNoFaultsOfTheAgent(t *testing.T) {
	for errno, reason := range map[unix.Errno]string{
		unix.EBUSY:      "busy",
		unix.ETXTBSY:    "busy",
		unix.EFBIG:      "invalid_argument",
		unix.EMLINK:     "invalid_argument",
		unix.EOPNOTSUPP: "invalid_argument",
		unix.ESPIPE:     "invalid_argument",
		unix.EIO:        "internal",
	} {
		err := Path(&fs.PathError{Op: "rename", Path: "/x", Err: errno}, "/x")
		if got := status.Convert(err).Message(); !strings.HasPrefix(got, reason+": ") {
			t.Errorf("%v: %q, want the reason %s", errno, got, reason)
		}
	}
}
