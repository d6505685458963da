// The floor that the product is measured against: the same restore and the same first command, done by
// a bare program against QEMU. It prints JSON; times are in milliseconds.
package main

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	pb "space/agent/agentpb"
)

// result is what is printed.
type result struct {
	Boot          float64            `json:"boot_to_first_output_ms"`
	BaseSnapshot  float64            `json:"base_snapshot_ms"`
	Create        []float64          `json:"create_to_first_output_ms"`
	CreateMedian  float64            `json:"create_to_first_output_median_ms"`
	CreateSteps   map[string]float64 `json:"create_steps_last_ms"`
	Exec          []float64          `json:"exec_round_trip_ms"`
	ExecMedian    float64            `json:"exec_round_trip_median_ms"`
	ShellMedian   float64            `json:"exec_shell_round_trip_median_ms"`
	Pause         float64            `json:"pause_ms"`
	Resume        float64            `json:"resume_ms"`
	Suspend       float64            `json:"suspend_full_ms"`
	Wake          float64            `json:"wake_to_first_output_ms"`
	SuspendBytes  int64              `json:"suspend_bytes"`
	Together      int                `json:"clones_at_once"`
	TogetherTotal float64            `json:"clones_at_once_all_answered_ms"`
	OutputRate    float64            `json:"guest_to_host_bytes_per_s"`
	InputRate     float64            `json:"host_to_guest_bytes_per_s"`
	Reconnected   bool               `json:"output_resumed_after_reconnect"`
}

func main() {
	var s setup
	flag.StringVar(&s.qemu, "qemu", "qemu-system-x86_64", "QEMU `program`")
	flag.StringVar(&s.kernel, "kernel", "", "kernel `file`")
	flag.StringVar(&s.initrd, "initrd", "", "initramfs `file` with the agent")
	flag.StringVar(&s.root, "root", "", "ext4 `image` of the template")
	flag.StringVar(&s.disk, "disk", "", "empty ext4 `image` for the writable disk")
	flag.IntVar(&s.memoryMiB, "memory", 256, "guest memory in `MiB`")
	base := flag.String("base", "", "`directory` for the base snapshot; used again when it holds one")
	creates := flag.Int("n", 5, "clones one after another")
	together := flag.Int("together", 4, "clones at once")
	volume := flag.Int64("bytes", 64<<20, "bytes of output for the rate")
	flag.Parse()
	if s.kernel == "" || s.initrd == "" || s.root == "" || s.disk == "" {
		flag.Usage()
		os.Exit(2)
	}
	r := &result{Together: *together}
	err := measure(s, *base, *creates, *volume, r)
	out := json.NewEncoder(os.Stdout)
	out.SetIndent("", "  ")
	_ = out.Encode(r)
	if err != nil {
		fmt.Fprintln(os.Stderr, "floor:", err)
		os.Exit(1)
	}
}

func measure(s setup, base string, creates int, volume int64, r *result) error {
	work, err := os.MkdirTemp("", "floor")
	if err != nil {
		return err
	}
	defer os.RemoveAll(work)
	for _, path := range []*string{&s.kernel, &s.initrd, &s.root, &s.disk} {
		if *path, err = filepath.Abs(*path); err != nil {
			return err
		}
	}
	if base == "" {
		base = filepath.Join(work, "base")
	}
	if base, err = filepath.Abs(base); err != nil {
		return err
	}
	if _, err := os.Stat(filepath.Join(base, "state")); err != nil {
		if err := s.makeBase(base, r); err != nil {
			return fmt.Errorf("base snapshot: %w", err)
		}
	}
	if err := s.makeClones(work, base, creates, r); err != nil {
		return err
	}
	clone, err := s.clone(filepath.Join(work, "long"), base, nil)
	if err != nil {
		return err
	}
	defer func() { clone.kill() }()
	if err := measureRunning(clone, volume, r); err != nil {
		return err
	}
	if err := s.measureSuspend(clone, filepath.Join(work, "woken"), r); err != nil {
		return fmt.Errorf("suspend: %w", err)
	}
	clone.kill()
	return s.measureTogether(work, base, r)
}

func since(t time.Time) float64 { return float64(time.Since(t).Microseconds()) / 1000 }

func median(values []float64) float64 {
	if len(values) == 0 {
		return 0
	}
	sorted := slices.Clone(values)
	slices.Sort(sorted)
	return sorted[len(sorted)/2]
}

// guest is a VM with a link to its agent.
type guest struct {
	*vm
	client     *grpc.ClientConn
	agent      pb.AgentClient
	generation uint64
	commands   int
}

func (g *guest) connect(newIdentity bool) error {
	if g.client != nil {
		g.client.Close()
	}
	// The first connection may meet what the past one left in the port; the link then says so and is
	// made again at once.
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

func (g *guest) kill() {
	if g.client != nil {
		g.client.Close()
	}
	g.vm.kill()
}

// run starts a command and gives its output and the time until its first byte.
func (g *guest) run(take func(int), argv ...string) (string, float64, error) {
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
	first := 0.0
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
			first = since(began)
		}
		if take != nil {
			take(len(data))
		} else {
			text = append(text, data...)
		}
		if exit := event.GetExit(); exit != nil && exit.Code != 0 {
			return string(text), first, fmt.Errorf("%v: exit %v", argv, exit)
		}
	}
}

func (g *guest) hello() error {
	text, _, err := g.run(nil, "echo", "hi")
	if err == nil && text != "hi\n" {
		err = fmt.Errorf("output is %q", text)
	}
	return err
}

func (s setup) makeBase(base string, r *result) error {
	if err := os.MkdirAll(base, 0o755); err != nil {
		return err
	}
	if err := copySparse(s.disk, filepath.Join(base, "disk.img")); err != nil {
		return err
	}
	began := time.Now()
	args := append(s.machine("memory", true), "-kernel", s.kernel, "-initrd", s.initrd, "-append", kernelArguments)
	v, err := s.start(base, args)
	if err != nil {
		return err
	}
	g := &guest{vm: v}
	defer g.kill()
	if err := g.connect(true); err != nil {
		return err
	}
	if err := g.hello(); err != nil {
		return err
	}
	r.Boot = since(began)
	began = time.Now()
	if _, err := g.agent.Sync(context.Background(), &pb.SyncRequest{}); err != nil {
		return err
	}
	g.client.Close()
	g.client = nil
	if err := v.call("stop", nil, nil); err != nil {
		return err
	}
	if err := v.save(filepath.Join(base, "state"), false); err != nil {
		return err
	}
	r.BaseSnapshot = since(began)
	return nil
}

func copySparse(from, to string) error {
	out, err := exec.Command("cp", "--sparse=always", "--reflink=auto", from, to).CombinedOutput()
	if err != nil {
		return fmt.Errorf("cp: %w: %s", err, out)
	}
	return nil
}

// clone restores the base snapshot and runs the first command.
func (s setup) clone(dir, base string, steps map[string]float64) (*guest, error) {
	began := time.Now()
	step := func(name string) {
		if steps != nil {
			steps[name] = since(began)
		}
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	if err := copySparse(filepath.Join(base, "disk.img"), filepath.Join(dir, "disk.img")); err != nil {
		return nil, err
	}
	step("1 disk")
	v, err := s.start(dir, append(s.machine(filepath.Join(base, "memory"), false), "-S", "-incoming", "defer"))
	if err != nil {
		return nil, err
	}
	g := &guest{vm: v, generation: 1}
	step("2 qmp ready")
	if err := v.load(filepath.Join(base, "state"), false); err != nil {
		g.kill()
		return nil, err
	}
	step("3 state loaded")
	if err := v.call("cont", nil, nil); err != nil {
		g.kill()
		return nil, err
	}
	step("4 running")
	if err := g.connect(true); err != nil {
		g.kill()
		return nil, err
	}
	step("5 adopted")
	if err := g.hello(); err != nil {
		g.kill()
		return nil, err
	}
	step("6 first command ended")
	return g, nil
}

func (s setup) makeClones(work, base string, n int, r *result) error {
	for i := range n {
		dir := filepath.Join(work, "clone"+strconv.Itoa(i))
		r.CreateSteps = map[string]float64{}
		began := time.Now()
		clone, err := s.clone(dir, base, r.CreateSteps)
		if err != nil {
			return fmt.Errorf("clone %d: %w", i, err)
		}
		r.Create = append(r.Create, since(began))
		clone.kill()
		os.RemoveAll(dir)
	}
	r.CreateMedian = median(r.Create)
	return nil
}

func measureRunning(g *guest, volume int64, r *result) error {
	const rounds = 20
	var shell []float64
	for range rounds {
		began := time.Now()
		if err := g.hello(); err != nil {
			return err
		}
		r.Exec = append(r.Exec, since(began))
		began = time.Now()
		if _, _, err := g.run(nil, "sh", "-c", "echo"); err != nil {
			return err
		}
		shell = append(shell, since(began))
	}
	r.ExecMedian, r.ShellMedian = median(r.Exec), median(shell)
	if err := pauseAndResume(g, r); err != nil {
		return err
	}
	began, got := time.Now(), int64(0)
	if _, _, err := g.run(func(n int) { got += int64(n) }, "head", "-c", strconv.FormatInt(volume, 10), "/dev/zero"); err != nil {
		return err
	}
	if got != volume {
		return fmt.Errorf("%d of %d bytes came", got, volume)
	}
	r.OutputRate = float64(got) / time.Since(began).Seconds()
	if err := upload(g, volume/4, r); err != nil {
		return err
	}
	return reconnect(g, r)
}

func pauseAndResume(g *guest, r *result) error {
	began := time.Now()
	if err := g.call("stop", nil, nil); err != nil {
		return err
	}
	r.Pause = since(began)
	began = time.Now()
	if err := g.call("cont", nil, nil); err != nil {
		return err
	}
	r.Resume = since(began)
	return g.hello()
}

func upload(g *guest, volume int64, r *result) error {
	stream, err := g.agent.WriteFile(context.Background())
	if err != nil {
		return err
	}
	began := time.Now()
	header := &pb.WriteFileHeader{Path: "/dev/shm/upload", Mode: 0o600}
	if err := stream.Send(&pb.WriteFileRequest{Part: &pb.WriteFileRequest_Header{Header: header}}); err != nil {
		return err
	}
	chunk := make([]byte, 64<<10)
	for sent := int64(0); sent < volume; sent += int64(len(chunk)) {
		if err := stream.Send(&pb.WriteFileRequest{Part: &pb.WriteFileRequest_Data{Data: chunk}}); err != nil {
			return err
		}
	}
	entry, err := stream.CloseAndRecv()
	if err != nil {
		return err
	}
	r.InputRate = float64(entry.Size) / time.Since(began).Seconds()
	_, err = g.agent.Remove(context.Background(), &pb.RemoveRequest{Path: "/dev/shm/upload"})
	return err
}

// reconnect leaves a process running, drops the link in the midst of its output and goes on from the
// last event.
func reconnect(g *guest, r *result) error {
	ctx, cancel := context.WithTimeout(context.Background(), startLimit)
	defer cancel()
	const lines = 300
	script := fmt.Sprintf("i=0; while [ $i -lt %d ]; do echo $i; i=$((i+1)); done", lines)
	if _, err := g.agent.Start(ctx, &pb.StartRequest{Id: "long", Argv: []string{"sh", "-c", script}}); err != nil {
		return err
	}
	var text []byte
	last, drops := uint64(0), 0
	for {
		stream, err := g.agent.Output(ctx, &pb.OutputRequest{Id: "long", AfterSeq: last})
		if err != nil {
			return err
		}
		for {
			event, err := stream.Recv()
			if err != nil {
				break
			}
			if event.Seq != last+1 {
				return fmt.Errorf("event %d follows %d", event.Seq, last)
			}
			last = event.Seq
			text = append(text, event.GetStdout()...)
			if event.GetExit() != nil {
				want := ""
				for i := range lines {
					want += strconv.Itoa(i) + "\n"
				}
				r.Reconnected = drops > 0 && string(text) == want
				return nil
			}
			if last%20 == 10 && drops < 3 {
				drops++
				break
			}
		}
		if err := g.connect(false); err != nil {
			return err
		}
	}
}

func (s setup) measureSuspend(g *guest, dir string, r *result) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	state := filepath.Join(dir, "state")
	began := time.Now()
	g.client.Close()
	g.client = nil
	if err := g.call("stop", nil, nil); err != nil {
		return err
	}
	if err := g.save(state, true); err != nil {
		return err
	}
	g.kill()
	r.Suspend = since(began)
	if info, err := os.Stat(state); err == nil {
		r.SuspendBytes = info.Size()
	}
	if err := os.Rename(filepath.Join(g.dir, "disk.img"), filepath.Join(dir, "disk.img")); err != nil {
		return err
	}
	began = time.Now()
	v, err := s.start(dir, append(s.machine("memory", false), "-S", "-incoming", "defer"))
	if err != nil {
		return err
	}
	woken := &guest{vm: v, generation: g.generation}
	defer woken.kill()
	if err := v.load(state, true); err != nil {
		return err
	}
	if err := v.call("cont", nil, nil); err != nil {
		return err
	}
	if err := woken.connect(false); err != nil {
		return err
	}
	if err := woken.hello(); err != nil {
		return err
	}
	r.Wake = since(began)
	return nil
}

func (s setup) measureTogether(work, base string, r *result) error {
	clones := make([]*guest, r.Together)
	failed := make([]error, r.Together)
	began := time.Now()
	var group sync.WaitGroup
	for i := range clones {
		group.Add(1)
		go func() {
			defer group.Done()
			clones[i], failed[i] = s.clone(filepath.Join(work, "together"+strconv.Itoa(i)), base, nil)
		}()
	}
	group.Wait()
	r.TogetherTotal = since(began)
	for _, clone := range clones {
		if clone != nil {
			clone.kill()
		}
	}
	return errors.Join(failed...)
}
