package main

import (
	"fmt"
	"log"
	"net"
	"os"
	"os/signal"
	"time"

	"golang.org/x/sys/unix"

	pb "space/agent/agentpb"
	"space/agent/boot"
	"space/agent/identity"
	"space/agent/link"
	"space/agent/process"
)

const portWait = 30 * time.Second

// guest is the machine whose PID 1 this is.
type guest struct {
	root     *boot.Root
	reboot   bool
	hostname string // the last one the host gave; a user may have set another since
}

func (g *guest) Adopt(request *pb.AdoptRequest) error {
	if request.UnixNanos > 0 {
		if err := identity.SetClock(request.UnixNanos); err != nil {
			return err
		}
	}
	if err := identity.AddEntropy(request.Entropy); err != nil {
		return err
	}
	if request.Hostname != "" && (request.NewIdentity || request.Hostname != g.hostname) {
		if err := identity.SetHostname(request.Hostname); err != nil {
			return err
		}
		g.hostname = request.Hostname
	}
	if request.NewIdentity {
		if err := identity.Renew(); err != nil {
			return err
		}
	}
	return identity.Publish(identity.EnvironmentFile, request.Env)
}

func (g *guest) PowerOff() { g.root.PowerOff(g.reboot) }

// runGuest never returns: a PID 1 that ends is a kernel panic without a word.
func runGuest() {
	g := &guest{}
	err := g.run()
	log.Printf("fatal: %v", err)
	g.PowerOff()
	select {}
}

func (g *guest) run() error {
	if err := boot.MountKernel(); err != nil {
		return err
	}
	options, err := boot.ReadOptions()
	if err != nil {
		return err
	}
	g.reboot = options.Reboot
	// What a terminal or an operator may send to PID 1 changes nothing here.
	// Not ignored: that would be inherited by every process.
	signal.Notify(make(chan os.Signal, 1), unix.SIGHUP, unix.SIGINT, unix.SIGQUIT, unix.SIGTERM,
		unix.SIGPIPE, unix.SIGALRM, unix.SIGUSR1, unix.SIGUSR2)
	uevents, err := boot.OpenUevents()
	if err != nil {
		return err
	}
	defer uevents.Close()
	if err := boot.LoadModules("/modules"); err != nil {
		return err
	}
	if g.root, err = boot.EnterRoot(uevents); err != nil {
		return err
	}
	if err := boot.FinishRoot(); err != nil {
		return err
	}
	if err := boot.Settle(options.Hostname); err != nil {
		log.Printf("warning: %v", err)
	}
	cgroups, err := process.OpenCgroups(boot.Cgroup)
	if err != nil {
		return err
	}
	listener, err := openLink(options, uevents)
	if err != nil {
		return err
	}
	agent := newAgent(g, cgroups)
	log.Printf("ready: agent %s, kernel %s, link %s", agent.Version, agent.Kernel, listener.Addr().Network())
	return fmt.Errorf("the guest link is gone: %w", agent.Serve().Serve(listener))
}

func openLink(options boot.Options, uevents *boot.Uevents) (net.Listener, error) {
	if options.VsockPort != 0 {
		return link.ListenVsock(options.VsockPort)
	}
	var device string
	err := uevents.Wait(fmt.Sprintf("virtio-serial port %q", options.PortName), portWait, func() bool {
		device = link.FindPort(options.PortName)
		if device == "" {
			return false
		}
		_, err := os.Stat(device)
		return err == nil
	})
	if err != nil {
		return nil, err
	}
	return link.ListenSerial(device)
}
