package main

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// bootFiles are what earlier tests of the service have left: a kernel, an initramfs with the agent, and a root image.
func bootFiles(t *testing.T) (kernel, initramfs, root string) {
	t.Helper()
	data := os.Getenv("SPACE_TEST_DATA")
	if data == "" {
		data = filepath.Join("..", ".space", "test")
	}
	found := func(pattern string) string {
		all, _ := filepath.Glob(filepath.Join(data, pattern))
		if len(all) == 0 {
			t.Skipf("no %s in %s: the service's VM tests make it", pattern, data)
		}
		path, err := filepath.Abs(all[0])
		if err != nil {
			t.Fatal(err)
		}
		return path
	}
	for _, tool := range []string{"qemu-system-x86_64", "mke2fs"} {
		if _, err := exec.LookPath(tool); err != nil {
			t.Skip(err)
		}
	}
	return found("kernel/*/vmlinuz*"), found("boot/initramfs-*.img"), found("templates/*/root.img")
}

// greet speaks the first words of HTTP/2 with the agent.
func (p *played) greet() {
	p.t.Helper()
	answered := false
	p.await(func() bool {
		conn, line := p.dial("CONNECT 52\n")
		defer conn.Close()
		if line == "" {
			return false
		}
		_, _ = io.WriteString(conn, "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\x00\x00\x00\x04\x00\x00\x00\x00\x00")
		frame := make([]byte, 9)
		_, err := io.ReadFull(conn, frame)
		answered = err == nil && frame[3] == 4
		return true
	})
	if !answered {
		p.t.Fatalf("no settings from the agent; it said: %s", p.said)
	}
}

func TestAGuestOfQemu(t *testing.T) {
	if testing.Short() {
		t.Skip("boots a guest")
	}
	kernel, initramfs, root := bootFiles(t)
	settings := fmt.Sprintf(`{"guest":"qemu","kernel":%q}`, kernel)
	p := play(t, settings)
	write(t, p.path("vmlinux"), "\x7fELF")
	if out, err := exec.Command("mke2fs", "-q", "-t", "ext4", p.path("disk"), "64M").CombinedOutput(); err != nil {
		t.Fatalf("%v %s", err, out)
	}
	if err := os.Symlink(root, p.path("root")); err != nil {
		t.Fatal(err)
	}
	p.good("PUT", "/machine-config", `{"vcpu_count":1,"mem_size_mib":256}`)
	p.good("PUT", "/boot-source", fmt.Sprintf(`{"kernel_image_path":"vmlinux","initrd_path":%q,
		"boot_args":"quiet panic=1 reboot=k pci=off space.link=vsock:52 space.poweroff=reboot"}`, initramfs))
	p.good("PUT", "/drives/root", `{"drive_id":"root","is_root_device":false,"is_read_only":true,"path_on_host":"root"}`)
	p.good("PUT", "/drives/disk", `{"drive_id":"disk","is_root_device":false,"is_read_only":false,"path_on_host":"disk"}`)
	p.good("PUT", "/vsock", `{"guest_cid":3,"uds_path":"v.sock"}`)
	p.good("PUT", "/entropy", `{}`)
	p.good("PUT", "/actions", `{"action_type":"InstanceStart"}`)
	p.greet()
	p.good("PATCH", "/vm", `{"state":"Paused"}`)
	p.good("PUT", "/snapshot/create", `{"snapshot_path":"state","mem_file_path":"mem"}`)
	frozen, err := os.ReadFile(p.path("disk"))
	if err != nil {
		t.Fatal(err)
	}
	p.good("PATCH", "/vm", `{"state":"Resumed"}`)
	p.greet()
	before := sum(t, p.path("mem"))

	var clones []*played
	for range 2 {
		c := play(t, settings)
		write(t, c.path("disk"), string(frozen))
		if err := os.Symlink(root, c.path("root")); err != nil {
			t.Fatal(err)
		}
		c.good("PUT", "/snapshot/load", fmt.Sprintf(`{"snapshot_path":%q,"mem_backend":{"backend_type":"File","backend_path":%q},
			"track_dirty_pages":true}`, p.path("state"), p.path("mem")))
		c.good("PATCH", "/vm", `{"state":"Resumed"}`)
		c.greet()
		clones = append(clones, c)
	}
	if sum(t, p.path("mem")) != before {
		t.Error("a clone wrote to the memory that it shares")
	}
	// A diff over the memory that was loaded is the same as all of it.
	c := clones[0]
	c.good("PATCH", "/vm", `{"state":"Paused"}`)
	base, err := os.ReadFile(p.path("mem"))
	if err != nil {
		t.Fatal(err)
	}
	write(t, c.path("merged"), string(base))
	c.good("PUT", "/snapshot/create", `{"snapshot_type":"Diff","snapshot_path":"s1","mem_file_path":"merged"}`)
	c.good("PUT", "/snapshot/create", `{"snapshot_type":"Full","snapshot_path":"s2","mem_file_path":"whole"}`)
	merged, err := os.ReadFile(c.path("merged"))
	if err != nil {
		t.Fatal(err)
	}
	whole, err := os.ReadFile(c.path("whole"))
	if err != nil || !bytes.Equal(merged, whole) || bytes.Equal(whole, base) {
		t.Errorf("%v: merged is whole %t, whole is base %t", err, bytes.Equal(merged, whole), bytes.Equal(whole, base))
	}
	// QEMU ends with the fake, also when that is killed.
	children := "/proc/" + fmt.Sprint(c.command.Process.Pid) + "/task"
	_ = c.command.Process.Kill()
	p.await(func() bool {
		_, err := os.Stat(children)
		out, _ := exec.Command("pgrep", "-f", "fake-firecracker-"+fmt.Sprint(c.command.Process.Pid)+"-").Output()
		return err != nil && strings.TrimSpace(string(out)) == ""
	})
}

func sum(t *testing.T, path string) string {
	t.Helper()
	out, err := exec.Command("sha256sum", path).Output()
	if err != nil {
		t.Fatal(err)
	}
	return strings.Fields(string(out))[0]
}
