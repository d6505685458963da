package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	pb "space/agent/agentpb"
)

// floor does to QEMU and the guest's agent what the service does, and nothing else.
type floor struct {
	machine
	work string
	made int
}

// guest is a VM with a link to its agent.
type guest struct {
	*vm
	client     *grpc.ClientConn
	agent      pb.AgentClient
	generation uint64
	commands   int
}

func (f *floor) directory() (string, error) {
	f.made++
	dir := filepath.Join(f.work, "f"+strconv.Itoa(f.made))
	if err := os.Mkdir(dir, 0o755); err != nil {
		return "", err
	}
	return dir, os.Chmod(dir, 0o711)
}

// clone restores the base snapshot in a directory and connects to the agent.
func (f *floor) clone(dir string) (*guest, error) {
	if err := copySparse(filepath.Join(f.base, "disk.img"), filepath.Join(dir, "disk.img")); err != nil {
		return nil, err
	}
	return f.restore(dir, filepath.Join(f.base, "state"), 1, true)
}

func (f *floor) restore(dir, state string, generation uint64, newIdentity bool) (*guest, error) {
	v, err := start(dir, f.machine.restore(dir))
	if err != nil {
		return nil, err
	}
	g := &guest{vm: v, generation: generation}
	if err := g.resume(state, newIdentity); err != nil {
		g.kill()
		return nil, err
	}
	return g, nil
}

func (g *guest) resume(state string, newIdentity bool) error {
	if err := g.load(state); err != nil {
		return err
	}
	if err := g.call("cont", nil, nil); err != nil {
		return err
	}
	return g.connect(newIdentity)
}

func copySparse(from, to string) error {
	out, err := exec.Command("cp", "--sparse=always", "--reflink=auto", from, to).CombinedOutput()
	if err != nil {
		return fmt.Errorf("cp: %w: %s", err, out)
	}
	return nil
}

func (g *guest) connect(newIdentity bool) error {
	g.disconnect()
	client, err := grpc.NewClient("passthrough:///agent",
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithInitialWindowSize(4<<20), grpc.WithInitialConnWindowSize(8<<20),
		grpc.WithReadBufferSize(256<<10),
		grpc.WithContextDialer(func(context.Context, string) (net.Conn, error) { return g.dial("agent.sock") }))
	if err != nil {
		return err
	}
	g.client, g.agent = client, pb.NewAgentClient(client)
	entropy := make([]byte, 64)
	if _, err := rand.Read(entropy); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), startLimit)
	defer cancel()
	g.generation++
	_, err = g.agent.Adopt(ctx, &pb.AdoptRequest{
		Generation: g.generation, NewIdentity: newIdentity, SandboxId: "floor", Hostname: "floor",
		UnixNanos: time.Now().UnixNano(), Entropy: entropy,
	}, grpc.WaitForReady(true))
	return err
}

func (g *guest) disconnect() {
	if g.client != nil {
		g.client.Close()
		g.client = nil
	}
}

func (g *guest) kill() {
	g.disconnect()
	g.vm.kill()
}

// command runs a command and gives its output, or hands it to take, and the time until its first byte.
func (g *guest) command(take func(int), argv ...string) (string, time.Duration, error) {
	began := time.Now()
	ctx, cancel := context.WithTimeout(context.Background(), 2*startLimit)
	defer cancel()
	g.commands++
	id := "c" + strconv.FormatUint(g.generation, 10) + "-" + strconv.Itoa(g.commands)
	if _, err := g.agent.Start(ctx, &pb.StartRequest{Id: id, Argv: argv}); err != nil {
		return "", 0, err
	}
	stream, err := g.agent.Output(ctx, &pb.OutputRequest{Id: id})
	if err != nil {
		return "", 0, err
	}
	var text []byte
	var first time.Duration
	for {
		event, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			return string(text), first, nil
		}
		if err != nil {
			return "", 0, err
		}
		data := event.GetStdout()
		if first == 0 && len(data) > 0 {
			first = time.Since(began)
		}
		if take != nil {
			take(len(data))
		} else {
			text = append(text, data...)
		}
		if exit := event.GetExit(); exit != nil && exit.Code != 0 {
			return string(text), first, fmt.Errorf("%v: exit %v, output %q", argv, exit, text)
		}
	}
}

// hello runs the command that everything is measured with.
func (g *guest) hello() (time.Duration, error) {
	text, first, err := g.command(nil, "echo", "hi")
	if err == nil && text != "hi\n" {
		err = fmt.Errorf("output is %q", text)
	}
	return first, err
}

// create gives the time from nothing to the first byte of a command's output.
func (f *floor) create(dir string) (*guest, time.Duration, error) {
	began := time.Now()
	g, err := f.clone(dir)
	if err != nil {
		return nil, 0, err
	}
	linked := time.Since(began)
	first, err := g.hello()
	if err != nil {
		g.kill()
		return nil, 0, err
	}
	return g, linked + first, nil
}

// sleep suspends a guest by QEMU's own stream and brings it back; the time ends with a first byte.
func (f *floor) sleep(g *guest) (*guest, time.Duration, error) {
	began := time.Now()
	state := filepath.Join(g.dir, "saved")
	g.disconnect()
	if err := g.call("stop", nil, nil); err != nil {
		return nil, 0, err
	}
	if err := g.save(state); err != nil {
		return nil, 0, err
	}
	g.kill()
	for _, name := range []string{"qmp.sock", "agent.sock", "in.sock", "qemu.pid"} {
		_ = os.Remove(filepath.Join(g.dir, name))
	}
	woken, err := f.restore(g.dir, state, g.generation, false)
	if err != nil {
		return nil, 0, err
	}
	linked := time.Since(began)
	first, err := woken.hello()
	if err != nil {
		woken.kill()
		return nil, 0, err
	}
	return woken, linked + first, nil
}

// rawPort is a guest with a second port on the same bus.
type rawPort struct {
	*guest
	conn net.Conn
	path string // of the port in the guest
}

const findPort = `for p in /sys/class/virtio-ports/*; do if [ "$(cat $p/name)" = space.raw ]; then echo /dev/${p##*/}; fi; done`

func (f *floor) rawPort() (*rawPort, error) {
	if f.kernel == "" {
		return nil, errors.New("no kernel and initramfs found in the data directory")
	}
	dir, err := f.directory()
	if err != nil {
		return nil, err
	}
	if err := copySparse(filepath.Join(f.base, "disk.img"), filepath.Join(dir, "disk.img")); err != nil {
		return nil, err
	}
	v, err := start(dir, f.bootWithRawPort(dir))
	if err != nil {
		return nil, err
	}
	r := &rawPort{guest: &guest{vm: v}}
	if err := r.prepare(); err != nil {
		r.kill()
		return nil, err
	}
	return r, nil
}

func (r *rawPort) prepare() (err error) {
	if err := r.connect(true); err != nil {
		return err
	}
	text, _, err := r.command(nil, "sh", "-c", findPort)
	if r.path = strings.TrimSpace(text); err != nil || r.path == "" {
		return fmt.Errorf("the raw port was not found in the guest: %q %v", text, err)
	}
	r.conn, err = r.dial("raw.sock")
	return err
}

// read gives the bytes per second that come straight through the port.
func (r *rawPort) read(kib int) (float64, error) {
	failed := make(chan error, 1)
	began := time.Now()
	go func() {
		_, _, err := r.command(nil, dd("of="+r.path, kib)...)
		failed <- err
	}()
	want := int64(kib) << 10
	if err := r.conn.SetReadDeadline(began.Add(2 * startLimit)); err != nil {
		return 0, err
	}
	if _, err := io.CopyN(io.Discard, r.conn, want); err != nil {
		return 0, err
	}
	rate := float64(want) / time.Since(began).Seconds()
	return rate, <-failed
}

// dd writes zeroes in pieces of 64 KiB; nothing in the guest is a cheaper source.
func dd(to string, kib int) []string {
	argv := []string{"dd", "if=/dev/zero", "bs=64k", "count=" + strconv.Itoa(kib/64), "status=none"}
	if to != "" {
		argv = append(argv, to)
	}
	return argv
}

// read gives the bytes per second of a command's output over grpc-go and the same link.
func (g *guest) read(kib int) (float64, error) {
	began, got := time.Now(), int64(0)
	if _, _, err := g.command(func(n int) { got += int64(n) }, dd("", kib)...); err != nil {
		return 0, err
	}
	if got != int64(kib)<<10 {
		return 0, fmt.Errorf("%d of %d bytes came", got, int64(kib)<<10)
	}
	return float64(got) / time.Since(began).Seconds(), nil
}
