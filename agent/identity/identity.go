// Package identity makes a restored guest its own: clock, random numbers, host name, machine id.
package identity

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

const (
	rndAddEntropy = 0x40085203
	rndReseedCRNG = 0x5207
	// MaxEntropy is the most that is taken, in bytes.
	MaxEntropy = 512

	bootIDFile = "/run/space-boot-id"
	bootID     = "/proc/sys/kernel/random/boot_id"
)

// SetClock sets the wall clock. The monotonic one isn't touched.
func SetClock(unixNanos int64) error {
	at := unix.NsecToTimespec(unixNanos)
	if err := unix.ClockSettime(unix.CLOCK_REALTIME, &at); err != nil {
		return fmt.Errorf("set the clock: %w", err)
	}
	return nil
}

// AddEntropy credits the bytes to the kernel's pool and makes it reseed its generator at once, so that
// two copies of one memory share no random number from here on.
func AddEntropy(entropy []byte) error {
	if len(entropy) > MaxEntropy {
		entropy = entropy[:MaxEntropy]
	}
	fd, err := unix.Open("/dev/urandom", unix.O_RDWR|unix.O_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("open /dev/urandom: %w", err)
	}
	defer unix.Close(fd)
	if len(entropy) > 0 {
		var info struct {
			bits, size int32
			buf        [MaxEntropy]byte
		}
		info.bits, info.size = int32(len(entropy)*8), int32(len(entropy))
		copy(info.buf[:], entropy)
		if _, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(fd), rndAddEntropy, uintptr(unsafe.Pointer(&info))); errno != 0 {
			return fmt.Errorf("add entropy: %w", errno)
		}
	}
	if _, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(fd), rndReseedCRNG, 0); errno != 0 {
		return fmt.Errorf("reseed the random generator: %w", errno)
	}
	return nil
}

// Renew gives the guest a new machine id and boot id. Call it after AddEntropy.
func Renew() error {
	return errors.Join(renewMachineID("/etc/machine-id"), renewBootID())
}

// SetHostname gives the guest a host name.
func SetHostname(hostname string) error {
	if err := unix.Sethostname([]byte(hostname)); err != nil {
		return fmt.Errorf("set the host name: %w", err)
	}
	return nil
}

func renewMachineID(file string) error {
	var id [16]byte
	if _, err := rand.Read(id[:]); err != nil {
		return err
	}
	id[6], id[8] = id[6]&0x0f|0x40, id[8]&0x3f|0x80
	// A link would lead the write elsewhere; an image may have one.
	if info, err := os.Lstat(file); err == nil && !info.Mode().IsRegular() {
		_ = os.Remove(file)
	}
	if err := os.WriteFile(file, []byte(hex.EncodeToString(id[:])+"\n"), 0o444); err != nil {
		return fmt.Errorf("write the machine id: %w", err)
	}
	return nil
}

// renewBootID lays a file over the kernel's boot id, which no memory copy would change.
func renewBootID() error {
	_, statErr := os.Stat(bootIDFile)
	if err := os.WriteFile(bootIDFile, []byte(UUID()+"\n"), 0o444); err != nil {
		return fmt.Errorf("write the boot id: %w", err)
	}
	if statErr == nil {
		return nil // bound already: the file under it is the same
	}
	if err := unix.Mount(bootIDFile, bootID, "", unix.MS_BIND, ""); err != nil {
		_ = os.Remove(bootIDFile)
		return fmt.Errorf("bind the boot id: %w", err)
	}
	return nil
}

// UUID makes a random one, version 4.
func UUID() string {
	var b [16]byte
	if _, err := rand.Read(b[:]); err != nil {
		return time.Now().Format(time.RFC3339Nano)
	}
	b[6], b[8] = b[6]&0x0f|0x40, b[8]&0x3f|0x80
	h := hex.EncodeToString(b[:])
	return h[:8] + "-" + h[8:12] + "-" + h[12:16] + "-" + h[16:20] + "-" + h[20:]
}
