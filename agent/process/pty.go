package process

import (
	"fmt"
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

const maxWindow = 4096 // columns or rows

// Size is that of a terminal's window in characters.
type Size struct {
	Cols, Rows uint32
}

func (s Size) valid() bool {
	return s.Cols > 0 && s.Rows > 0 && s.Cols <= maxWindow && s.Rows <= maxWindow
}

// openPty gives both ends of a new terminal that has its size already and belongs to uid.
func openPty(size Size, uid int) (controller, terminal *os.File, err error) {
	fd, err := unix.Open("/dev/ptmx", unix.O_RDWR|unix.O_NOCTTY|unix.O_CLOEXEC|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil, nil, fmt.Errorf("open /dev/ptmx: %w", err)
	}
	controller = os.NewFile(uintptr(fd), "ptmx")
	defer func() {
		if err != nil {
			controller.Close()
		}
	}()
	if err := unix.IoctlSetPointerInt(fd, unix.TIOCSPTLCK, 0); err != nil {
		return nil, nil, fmt.Errorf("unlock the terminal: %w", err)
	}
	number, err := unix.IoctlGetUint32(fd, unix.TIOCGPTN)
	if err != nil {
		return nil, nil, fmt.Errorf("number of the terminal: %w", err)
	}
	name := "/dev/pts/" + strconv.FormatUint(uint64(number), 10)
	peer, err := unix.Open(name, unix.O_RDWR|unix.O_NOCTTY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, nil, fmt.Errorf("open %s: %w", name, err)
	}
	terminal = os.NewFile(uintptr(peer), name)
	if err := setSize(fd, size); err != nil {
		terminal.Close()
		return nil, nil, err
	}
	_ = unix.Fchown(peer, uid, -1) // /dev/pts may be one where only its maker may
	return controller, terminal, nil
}

func setSize(fd int, size Size) error {
	return unix.IoctlSetWinsize(fd, unix.TIOCSWINSZ, &unix.Winsize{Col: uint16(size.Cols), Row: uint16(size.Rows)})
}
