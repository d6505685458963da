package boot

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// Settle sets what every guest has: loopback, host name, limits. What fails here is told and lived with.
func Settle(hostname string) error {
	return errors.Join(
		loopback(), limits(), cgroup(), hosts(),
		unix.Sethostname([]byte(hostname)),
	)
}

func loopback() error {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("loopback: %w", err)
	}
	defer unix.Close(fd)
	request, err := unix.NewIfreq("lo")
	if err != nil {
		return err
	}
	if err := unix.IoctlIfreq(fd, unix.SIOCGIFFLAGS, request); err != nil {
		return fmt.Errorf("loopback: %w", err)
	}
	request.SetUint16(request.Uint16() | unix.IFF_UP)
	if err := unix.IoctlIfreq(fd, unix.SIOCSIFFLAGS, request); err != nil {
		return fmt.Errorf("loopback: %w", err)
	}
	return nil
}

func limits() error {
	unix.Umask(0o022)
	for file, value := range map[string]string{
		"/proc/sys/fs/inotify/max_user_watches":   "524288",
		"/proc/sys/fs/inotify/max_user_instances": "1024",
		"/proc/sys/net/ipv4/ping_group_range":     "0 2147483647",
	} {
		_ = os.WriteFile(file, []byte(value), 0o644)
	}
	return errors.Join(
		unix.Setrlimit(unix.RLIMIT_NOFILE, &unix.Rlimit{Cur: 65536, Max: 1 << 20}),
		unix.Setrlimit(unix.RLIMIT_CORE, &unix.Rlimit{Cur: 0, Max: unix.RLIM_INFINITY}),
		unix.Setrlimit(unix.RLIMIT_MEMLOCK, &unix.Rlimit{Cur: 64 << 20, Max: 64 << 20}),
	)
}

// threadsKept is what the guest's processes leave to the agent and the kernel when they fork without end.
const threadsKept = 256

func cgroup() error {
	if err := os.WriteFile("/sys/fs/cgroup/cgroup.subtree_control", []byte("+pids"), 0o644); err != nil {
		return fmt.Errorf("cgroup: %w", err)
	}
	if err := os.MkdirAll(Cgroup, 0o755); err != nil {
		return fmt.Errorf("cgroup: %w", err)
	}
	text, err := os.ReadFile("/proc/sys/kernel/threads-max")
	if err != nil {
		return fmt.Errorf("cgroup: %w", err)
	}
	most, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil {
		return fmt.Errorf("cgroup: %w", err)
	}
	most = max(most-threadsKept, most/2)
	return os.WriteFile(Cgroup+"/pids.max", []byte(strconv.Itoa(most)), 0o644)
}

// hosts gives an image without /etc/hosts one: in containers it is the runtime's to write.
func hosts() error {
	if info, err := os.Stat("/etc/hosts"); err == nil && info.Size() > 0 {
		return nil
	}
	if err := os.MkdirAll("/etc", 0o755); err != nil {
		return err
	}
	return os.WriteFile("/etc/hosts", []byte("127.0.0.1 localhost\n::1 localhost ip6-localhost\n"), 0o644)
}
