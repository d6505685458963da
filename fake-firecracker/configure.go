package main

import (
	"encoding/json"
	"os"
	"runtime"
)

// -- before the start

func (m *machine) putLogger(_ settings, _ string, body fields) answer {
	if path := body.text("log_path", ""); path != "" {
		if err := m.log.open(path); err != nil {
			return bad("Logger error: Failed to open target file: %v", osError(err))
		}
	}
	if level := body.text("level", ""); level != "" {
		m.log.setLevel(level)
	}
	m.log.mu.Lock()
	defer m.log.mu.Unlock()
	if body.has("show_level") {
		m.log.named = body.flag("show_level")
	}
	if body.has("show_log_origin") {
		m.log.origin = body.flag("show_log_origin")
	}
	return done
}

func (m *machine) putMetrics(_ settings, _ string, body fields) answer {
	if m.metrics.isOpen() {
		return bad("Metrics error: Cannot initialize the metrics system due to bad user input: Reinitialization of metrics not allowed.")
	}
	if err := m.metrics.open(body.text("metrics_path", "")); err != nil {
		return bad("Metrics error: Cannot initialize the metrics system due to bad user input: %v", osError(err))
	}
	return done
}

func (m *machine) putSerial(_ settings, _ string, body fields) answer {
	m.serial = body.text("serial_out_path", "")
	return done
}

func (m *machine) putMachineConfig(_ settings, _ string, body fields) answer {
	m.touched = true
	if len(body) == 0 {
		return bad("Empty PATCH request.")
	}
	next := m.config
	next.VCPUs = body.number("vcpu_count", next.VCPUs)
	next.MemoryMib = body.number("mem_size_mib", next.MemoryMib)
	if body.has("smt") {
		next.SMT = body.flag("smt")
	}
	if body.has("track_dirty_pages") {
		next.Track = body.flag("track_dirty_pages")
	}
	next.HugePages = body.text("huge_pages", next.HugePages)
	next.Template = body.text("cpu_template", next.Template)
	if next.VCPUs < 1 || next.VCPUs > 32 || next.SMT && next.VCPUs > 1 && next.VCPUs%2 == 1 {
		return bad("Machine config error: The number of vCPUs must be greater than 0, less than 32 and must be 1 or an even number if SMT is enabled.")
	}
	if next.MemoryMib < 1 || next.HugePages == "2M" && next.MemoryMib%2 == 1 {
		return bad("Machine config error: The memory size (MiB) is either 0, or not a multiple of the configured page size.")
	}
	if next.Balloon != nil && next.Balloon.AmountMib > next.MemoryMib {
		return bad("Machine config error: The memory size (MiB) is smaller than the previously set balloon device target size.")
	}
	m.config = next
	answered := done
	answered.deprecated = body.has("cpu_template")
	return answered
}

func (m *machine) putCPUConfig(settings, string, fields) answer { return done }

func (m *machine) putBootSource(_ settings, _ string, body fields) answer {
	m.touched = true
	kernel, initrd := body.text("kernel_image_path", ""), body.text("initrd_path", "")
	if err := readable(kernel); err != nil {
		return bad("Boot source error: The kernel file cannot be opened: %v", osError(err))
	}
	if initrd != "" {
		if err := readable(initrd); err != nil {
			return bad("Boot source error: The initrd file cannot be opened due to invalid path or invalid permissions. %v", osError(err))
		}
	}
	args := body.text("boot_args", defaultArgs)
	if len(args) > 2048 {
		return bad("Boot source error: The kernel command line is invalid: The command line string is longer than allowed.")
	}
	m.config.Kernel, m.config.Initrd, m.config.Args = kernel, initrd, args
	return done
}

func readable(path string) error {
	file, err := os.Open(path)
	if err == nil {
		file.Close()
	}
	return err
}

func openDrive(path string, readOnly bool) error {
	mode := os.O_RDWR
	if readOnly {
		mode = os.O_RDONLY
	}
	file, err := os.OpenFile(path, mode, 0)
	if err == nil {
		file.Close()
	}
	return err
}

const driveError = "Drive config error: Unable to create the virtio block device: "

func (m *machine) putDrive(_ settings, id string, body fields) answer {
	m.touched = true
	if body.has("socket") {
		return bad(driveError + "Vhost-user-block is not played by the fake.")
	}
	if !body.has("path_on_host") || !body.has("is_read_only") {
		return bad(driveError + "Running method expected different backend.")
	}
	d := drive{ID: id, Path: body.text("path_on_host", ""), Root: body.flag("is_root_device"),
		ReadOnly: body.flag("is_read_only"), Cache: body.text("cache_type", "Unsafe"),
		Engine: body.text("io_engine", "Sync"), PartUUID: body.text("partuuid", ""), RateLimit: body.sub("rate_limiter")}
	at := -1
	for i, other := range m.config.Drives {
		if other.ID == id {
			at = i
		}
		if d.Root && other.Root && other.ID != id {
			return bad("Drive config error: A root block device already exists!")
		}
	}
	if err := openDrive(d.Path, d.ReadOnly); err != nil {
		return bad(driveError+"Virtio backend error: Error manipulating the backing file: %v %s", osError(err), d.Path)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	switch {
	case at >= 0:
		m.config.Drives[at] = d
		if d.Root {
			m.config.Drives[0], m.config.Drives[at] = m.config.Drives[at], m.config.Drives[0]
		}
	case d.Root:
		m.config.Drives = append([]drive{d}, m.config.Drives...)
	default:
		m.config.Drives = append(m.config.Drives, d)
	}
	return done
}

func (m *machine) putNet(_ settings, id string, body fields) answer {
	m.touched = true
	n := netInterface{ID: id, Device: body.text("host_dev_name", ""), MAC: body.text("guest_mac", ""),
		RX: body.sub("rx_rate_limiter"), TX: body.sub("tx_rate_limiter")}
	m.mu.Lock()
	defer m.mu.Unlock()
	for i, other := range m.config.Interfaces {
		if other.ID == id {
			m.config.Interfaces[i] = n
			return done
		}
		if n.MAC != "" && other.MAC == n.MAC {
			return bad("Network config error: The MAC address is already in use: %s", n.MAC)
		}
	}
	if _, err := os.Stat("/sys/class/net/" + n.Device); err != nil {
		if _, noSys := os.Stat("/sys/class/net"); noSys == nil {
			return bad("Network config error: Could not create the network device: Open tap device failed: Error while creating ifreq structure: No such device (os error 19). Invalid TUN/TAP Backend provided by %s.", n.Device)
		}
	}
	m.config.Interfaces = append(m.config.Interfaces, n)
	return done
}

func (m *machine) putVsock(_ settings, _ string, body fields) answer {
	m.touched = true
	c := vsockConfig{CID: body.number("guest_cid", 0), Path: body.text("uds_path", "")}
	if c.CID < 3 {
		return bad("Vsock config error: Cannot create vsock device: Invalid guest CID %d.", c.CID)
	}
	next, err := listenVsock(m, c.Path)
	if err != nil {
		return bad("Vsock config error: Cannot create backend for vsock device: Error binding to the host-side Unix socket: %v", osError(err))
	}
	if m.vsock != nil {
		m.vsock.close()
	}
	m.vsock, m.config.Vsock = next, &c
	answered := done
	answered.deprecated = body.has("vsock_id")
	return answered
}

func (m *machine) putEntropy(_ settings, _ string, body fields) answer {
	m.touched = true
	text, _ := json.Marshal(body)
	raw := json.RawMessage(text)
	m.config.Entropy = &raw
	return done
}

func (m *machine) putBalloon(_ settings, _ string, body fields) answer {
	m.touched = true
	b := balloon{AmountMib: body.number("amount_mib", 0), DeflateOOM: body.flag("deflate_on_oom"),
		StatsEvery: body.number("stats_polling_interval_s", 0), Reporting: body.flag("free_page_reporting"),
		Hinting: body.flag("free_page_hinting")}
	if b.AmountMib > m.config.MemoryMib {
		return bad("Balloon config error: Amount of pages requested is too large.")
	}
	m.config.Balloon = &b
	return done
}

func (m *machine) putUnsupported(settings, string, fields) answer {
	return bad("The requested operation is not supported: the fake has no pmem and no memory hotplug.")
}

func (m *machine) getUnsupported(settings, string, fields) answer {
	return bad("Internal VMM error: Memory hotplug device not found.")
}

func (m *machine) act(s settings, _ string, body fields) answer {
	action := body.text("action_type", "")
	switch started := m.isStarted(); {
	case action == "InstanceStart" && started:
		return bad("The requested operation is not supported after starting the microVM.")
	case action != "InstanceStart" && !started:
		return bad("The requested operation is not supported before starting the microVM.")
	}
	switch action {
	case "FlushMetrics":
		if err := m.metrics.flush(m.deviceIDs()); err != nil {
			return bad("Internal VMM error: Failed to flush metrics: %v", err)
		}
		return done
	case "SendCtrlAltDel":
		if runtime.GOARCH != "amd64" {
			return bad("SendCtrlAltDel does not supported on aarch64.")
		}
		if err := m.guest.ctrlAltDel(); err != nil {
			return bad("Internal VMM error: %v", err)
		}
		return done
	}
	return m.start(s)
}

func (m *machine) start(s settings) answer {
	if m.config.Kernel == "" {
		return bad("Start microvm error: Cannot start microvm without kernel configuration.")
	}
	if !s.atLeast(1, 17) && !isELF(m.config.Kernel) {
		return bad("Start microvm error: Cannot load kernel due to invalid memory configuration or invalid kernel image: Kernel Loader: failed to load ELF kernel image")
	}
	started, err := bootGuest(m, s)
	if err != nil {
		return bad("Start microvm error: %v", err)
	}
	m.mu.Lock()
	m.guest, m.state, m.booted = started, "Running", true
	m.mu.Unlock()
	m.log.write("INFO", "Successfully started microvm that was configured from one single json")
	return done
}

func isELF(path string) bool {
	file, err := os.Open(path)
	if err != nil {
		return false
	}
	defer file.Close()
	magic := make([]byte, 4)
	_, err = file.ReadAt(magic, 0)
	return err == nil && string(magic) == "\x7fELF"
}
