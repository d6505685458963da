package main

import (
	"encoding/json"
	"os"
	"sync"
	"time"
)

// config is what a machine is made of; a snapshot holds it.
type config struct {
	VCPUs      int64            `json:"vcpu_count"`
	MemoryMib  int64            `json:"mem_size_mib"`
	SMT        bool             `json:"smt"`
	Track      bool             `json:"track_dirty_pages"`
	HugePages  string           `json:"huge_pages"`
	Template   string           `json:"cpu_template,omitempty"`
	Kernel     string           `json:"kernel_image_path,omitempty"`
	Initrd     string           `json:"initrd_path,omitempty"`
	Args       string           `json:"boot_args,omitempty"`
	Drives     []drive          `json:"drives"`
	Interfaces []netInterface   `json:"network-interfaces"`
	Vsock      *vsockConfig     `json:"vsock,omitempty"`
	Entropy    *json.RawMessage `json:"entropy,omitempty"`
	Balloon    *balloon         `json:"balloon,omitempty"`
	MmdsConfig fields           `json:"mmds-config,omitempty"`
}

type drive struct {
	ID        string `json:"drive_id"`
	Path      string `json:"path_on_host"`
	Root      bool   `json:"is_root_device"`
	ReadOnly  bool   `json:"is_read_only"`
	Cache     string `json:"cache_type"`
	Engine    string `json:"io_engine"`
	PartUUID  string `json:"partuuid,omitempty"`
	RateLimit fields `json:"rate_limiter,omitempty"`
}

type netInterface struct {
	ID     string `json:"iface_id"`
	Device string `json:"host_dev_name"`
	MAC    string `json:"guest_mac,omitempty"`
	RX     fields `json:"rx_rate_limiter,omitempty"`
	TX     fields `json:"tx_rate_limiter,omitempty"`
}

type vsockConfig struct {
	CID  int64  `json:"guest_cid"`
	Path string `json:"uds_path"`
}

type balloon struct {
	AmountMib  int64 `json:"amount_mib"`
	DeflateOOM bool  `json:"deflate_on_oom"`
	StatsEvery int64 `json:"stats_polling_interval_s"`
	Reporting  bool  `json:"free_page_reporting"`
	Hinting    bool  `json:"free_page_hinting"`
}

const defaultArgs = "reboot=k panic=1 nomodule 8250.nr_uarts=0 i8042.noaux i8042.nomux i8042.dumbkbd swiotlb=noforce"

// machine is the state of one microVM. Calls come one at a time; what the guest does comes beside them.
type machine struct {
	id      string
	log     *logger
	metrics *metrics
	pci     bool
	mmdsMax int

	mu sync.Mutex
	// state is "Not started", "Running" or "Paused".
	state string
	// touched is true when something of a boot was configured.
	touched bool
	config  config
	booted  bool // by a kernel and not by a snapshot
	serial  string
	mmds    any
	vsock   *vsock
	guest   guest
	// resetDue is true after a snapshot: the guest then ends its vsock connections when it runs again.
	resetDue bool
	ending   bool
}

// guest is what runs, or seems to.
type guest interface {
	pause() error
	resume() error
	// dial connects to a vsock port; an error is that nobody listens.
	dial(port uint32) (guestConn, error)
	// hangUp ends all connections, and returns when the guest will see it so.
	hangUp()
	// save gives the devices' state.
	save() ([]byte, error)
	// copyMemory writes the guest's memory, or only what changed.
	copyMemory(to *os.File, diff bool) error
	resize(index int, path string) error
	setBalloon(mib int64) error
	balloonMib() (int64, error)
	ctrlAltDel() error
	kill()
}

func newMachine(id string, log *logger, metrics *metrics, pci bool) *machine {
	return &machine{id: id, log: log, metrics: metrics, pci: pci, state: "Not started", mmdsMax: payloadBytesMax,
		config: config{VCPUs: 1, MemoryMib: 128, HugePages: "None"}}
}

func (m *machine) isStarted() bool { return m.current() != "Not started" }

func (m *machine) current() string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.state
}

func (m *machine) become(state string) {
	m.mu.Lock()
	m.state = state
	m.mu.Unlock()
}

func (m *machine) deviceIDs() (drives, interfaces []string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, d := range m.config.Drives {
		drives = append(drives, d.ID)
	}
	for _, i := range m.config.Interfaces {
		interfaces = append(interfaces, i.ID)
	}
	return drives, interfaces
}

// end ends the process, and the guest before it.
func (m *machine) end(code int) {
	m.mu.Lock()
	if m.ending {
		m.mu.Unlock()
		select {}
	}
	m.ending = true
	running := m.guest
	m.mu.Unlock()
	if running != nil {
		running.kill()
	}
	if m.metrics.isOpen() {
		_ = m.metrics.flush(m.deviceIDs())
	}
	if code == 0 {
		m.log.write("INFO", "Vmm is stopping.")
		m.log.write("INFO", "Firecracker exiting successfully. exit_code=0")
	}
	os.Exit(code)
}

// rebooted is called when the guest ended itself.
func (m *machine) rebooted() { m.end(0) }

// -- reading

func (m *machine) info(s settings, _ string, _ fields) answer {
	return found(map[string]string{"id": m.id, "state": m.current(), "vmm_version": s.Version, "app_name": "Firecracker"})
}

func (m *machine) version(s settings, _ string, _ fields) answer {
	return found(map[string]string{"firecracker_version": s.Version})
}

func (m *machine) machineConfig() map[string]any {
	c := m.config
	shown := map[string]any{"vcpu_count": c.VCPUs, "mem_size_mib": c.MemoryMib, "smt": c.SMT,
		"track_dirty_pages": c.Track, "huge_pages": c.HugePages}
	if c.Template != "" {
		shown["cpu_template"] = c.Template
	}
	return shown
}

func (m *machine) getMachineConfig(settings, string, fields) answer { return found(m.machineConfig()) }

func (m *machine) wholeConfig(settings, string, fields) answer {
	c := m.config
	boot := map[string]any{}
	if m.booted || m.current() == "Not started" && c.Kernel != "" {
		boot = map[string]any{"kernel_image_path": c.Kernel, "initrd_path": orNull(c.Initrd), "boot_args": orNull(c.Args)}
	}
	return found(map[string]any{"machine-config": m.machineConfig(), "boot-source": boot, "drives": orEmpty(c.Drives),
		"network-interfaces": orEmpty(c.Interfaces), "vsock": c.Vsock, "entropy": c.Entropy, "balloon": c.Balloon,
		"mmds-config": c.MmdsConfig, "logger": nil, "metrics": nil, "cpu-config": nil})
}

func orNull(s string) any {
	if s == "" {
		return nil
	}
	return s
}

func orEmpty[T any](list []T) []T {
	if list == nil {
		return []T{}
	}
	return list
}

// -- after the start

func (m *machine) setState(_ settings, _ string, body fields) answer {
	began := time.Now()
	if body.text("state", "") == "Paused" {
		if m.current() == "Running" {
			if err := m.guest.pause(); err != nil {
				return bad("Internal VMM error: %v", err)
			}
		}
		m.become("Paused")
		m.metrics.store("latencies_us", "vmm_pause_vm", time.Since(began).Microseconds())
		return done
	}
	if m.current() == "Paused" {
		if err := m.resume(); err != nil {
			return bad("Internal VMM error: %v", err)
		}
		m.metrics.store("latencies_us", "vmm_resume_vm", time.Since(began).Microseconds())
	}
	return done
}

func (m *machine) resume() error {
	if m.resetDue && m.vsock != nil {
		m.vsock.reset()
	}
	m.resetDue = false
	if err := m.guest.resume(); err != nil {
		return err
	}
	m.become("Running")
	return nil
}

func (m *machine) patchDrive(_ settings, id string, body fields) answer {
	for i := range m.config.Drives {
		d := &m.config.Drives[i]
		if d.ID != id {
			continue
		}
		if path := body.text("path_on_host", ""); path != "" {
			if err := openDrive(path, d.ReadOnly); err != nil {
				return bad("Drive config error: Unable to patch the block device: Virtio backend error: Error manipulating the backing file: %v %s Please verify the request arguments.", osError(err), path)
			}
			if err := m.guest.resize(i, path); err != nil {
				return bad("Drive config error: Unable to patch the block device: %v Please verify the request arguments.", err)
			}
			d.Path = path
		}
		if limit := body.sub("rate_limiter"); limit != nil {
			d.RateLimit = merged(d.RateLimit, limit)
		}
		return done
	}
	return bad("Drive config error: Unable to patch the block device: Device manager error: Error searching for device: Device not found. Please verify the request arguments.")
}

func merged(old, update fields) fields {
	next := fields{}
	for name, v := range old {
		next[name] = v
	}
	for name, v := range update {
		if b, ok := v.(fields); ok && (b.number("size", 0) == 0 || b.number("refill_time", 0) == 0) {
			delete(next, name)
		} else {
			next[name] = v
		}
	}
	return next
}

func (m *machine) patchNet(_ settings, id string, body fields) answer {
	for i := range m.config.Interfaces {
		n := &m.config.Interfaces[i]
		if n.ID == id {
			n.RX, n.TX = merged(n.RX, body.sub("rx_rate_limiter")), merged(n.TX, body.sub("tx_rate_limiter"))
			return done
		}
	}
	return bad("Network config error: Error updating the rate limiters: Device not found.")
}
