package boot

import (
	"os"
	"path/filepath"
	"reflect"
	"testing"

	"golang.org/x/sys/unix"
)

func TestOptionsOfTheCommandLine(t *testing.T) {
	for line, want := range map[string]Options{
		"quiet":                        {PortName: "space.agent", Hostname: "sandbox"},
		"space.link=virtio:other":      {PortName: "other", Hostname: "sandbox"},
		"space.link=vsock:52 x=y":      {VsockPort: 52, Hostname: "sandbox"},
		"space.poweroff=reboot quiet ": {PortName: "space.agent", Reboot: true, Hostname: "sandbox"},
	} {
		if got, err := parseOptions(line); err != nil || got != want {
			t.Errorf("%q: %+v %v", line, got, err)
		}
	}
	for _, line := range []string{"space.link=tcp:1", "space.link=vsock:x", "space.poweroff=maybe"} {
		if _, err := parseOptions(line); err == nil {
			t.Errorf("%q is taken", line)
		}
	}
}

func TestModulesAreLoadedInTheOrderOfModulesDep(t *testing.T) {
	dir := t.TempDir()
	dep := "virtio_blk.ko: virtio.ko virtio_ring.ko\nvirtio.ko: virtio_ring.ko\nvirtio_ring.ko:\nkernel/fs/over-lay.ko:\n"
	_ = os.WriteFile(dir+"/modules.dep", []byte(dep), 0o644)
	_ = os.WriteFile(dir+"/wanted", []byte("virtio_blk\nbuiltin\nover_lay\nvirtio\n"), 0o644)
	var loaded []string
	m := &modules{dir: dir, load: func(file string) error {
		loaded = append(loaded, filepath.Base(file))
		if filepath.Base(file) == "virtio_ring.ko" {
			return unix.EEXIST
		}
		return nil
	}}
	if err := m.run(); err != nil {
		t.Fatal(err)
	}
	if want := []string{"virtio_ring.ko", "virtio.ko", "virtio_blk.ko", "over-lay.ko"}; !reflect.DeepEqual(loaded, want) {
		t.Fatalf("loaded %v", loaded)
	}
}
