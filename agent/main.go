// The agent of a guest. As PID 1 it boots the guest and serves the host over the guest link; with
// -listen it serves the same calls as an ordinary process, for development and tests.
package main

import (
	"flag"
	"fmt"
	"log"
	"net"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"strings"

	"golang.org/x/sys/unix"

	"space/agent/account"
	pb "space/agent/agentpb"
	"space/agent/identity"
	"space/agent/process"
	"space/agent/server"
)

// version is set by the build.
var version = "dev"

func main() {
	log.SetFlags(0)
	log.SetPrefix("space-agent: ")
	tune()
	if os.Getpid() == 1 {
		runGuest()
		return
	}
	listen := flag.String("listen", "", "serve as an ordinary process on unix:/path or tcp:host:port")
	flag.Parse()
	if *listen == "" {
		fmt.Fprintln(os.Stderr, "usage: agent -listen unix:/path   (without it the agent is PID 1 of a guest)")
		os.Exit(2)
	}
	if err := runProcess(*listen); err != nil {
		log.Fatal(err)
	}
}

// tune keeps the heap small: what a guest has is its user's. The reaper's thread sits in a system call
// nearly always, so there is a second place to run goroutines even with one CPU.
func tune() {
	debug.SetMemoryLimit(64 << 20)
	runtime.GOMAXPROCS(max(2, runtime.NumCPU()))
}

func newAgent(machine server.Machine, cgroups *process.Cgroups) *server.Agent {
	accounts := account.Directory{Root: "/"}
	return &server.Agent{
		Version: version, BootID: identity.UUID(), Kernel: kernelRelease(),
		Processes: process.NewTable(accounts, cgroups), Accounts: accounts, Machine: machine,
	}
}

func kernelRelease() string {
	var name unix.Utsname
	if err := unix.Uname(&name); err != nil {
		return ""
	}
	return unix.ByteSliceToString(name.Release[:])
}

// host is the machine of an agent that runs as an ordinary process: it isn't the agent's to change.
type host struct {
	stop func()
}

func (h host) Adopt(*pb.AdoptRequest) error { return nil }

func (h host) PowerOff() { h.stop() }

func runProcess(listen string) error {
	network, address, found := strings.Cut(listen, ":")
	if !found || network != "unix" && network != "tcp" {
		return fmt.Errorf("-listen is unix:/path or tcp:host:port, not %q", listen)
	}
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("become a subreaper: %w", err)
	}
	listener, err := net.Listen(network, address)
	if err != nil {
		return err
	}
	cgroups := hostCgroups()
	if cgroups != nil {
		defer cgroups.Close()
	}
	machine := &host{}
	agent := newAgent(machine, cgroups)
	grpcServer := agent.Serve()
	machine.stop = func() { go grpcServer.Stop() }
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, unix.SIGTERM, unix.SIGINT)
	go func() {
		<-signals
		grpcServer.Stop()
	}()
	err = grpcServer.Serve(listener)
	agent.Processes.SignalAll(unix.SIGKILL)
	return err
}

// hostCgroups makes a cgroup of its own where this process may; nil and a word in the log where not.
func hostCgroups() *process.Cgroups {
	mounts, err := os.ReadFile("/proc/self/mounts")
	if err == nil {
		for _, line := range strings.Split(string(mounts), "\n") {
			fields := strings.Fields(line)
			if len(fields) < 3 || fields[2] != "cgroup2" {
				continue
			}
			dir := filepath.Join(fields[1], fmt.Sprintf("space-agent-%d", os.Getpid()))
			cgroups, openErr := process.OpenCgroups(dir)
			if openErr == nil {
				return cgroups
			}
			err = openErr
		}
	}
	log.Printf("no cgroup2 to use (%v): process trees are found by scanning /proc, which a process can escape", err)
	return nil
}
