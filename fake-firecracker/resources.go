package main

var (
	bucket      = of(must("size", number), may("one_time_burst", number), must("refill_time", number))
	rateLimiter = of(sub("bandwidth", bucket), sub("ops", bucket))

	loggerBody = of(may("log_path", text),
		one("level", "Off", "Trace", "Debug", "Info", "Warn", "Warning", "Error", "OFF", "TRACE", "DEBUG", "INFO", "WARN", "WARNING", "ERROR"),
		may("show_level", flag), may("show_log_origin", flag), may("module", text))
	// The real one takes unknown fields here.
	metricsBody = &schema{lenient: true, fields: []field{must("metrics_path", text)}}
	serialBody  = of(may("serial_out_path", text), sub("rate_limiter", bucket).from(1, 16))
	machineBody = of(must("vcpu_count", byteNumber), must("mem_size_mib", number), may("smt", flag),
		one("cpu_template", "C3", "T2", "T2S", "T2CL", "T2A", "V1N1", "None"), may("track_dirty_pages", flag),
		one("huge_pages", "None", "2M", "Transparent"))
	machinePatch = of(may("vcpu_count", byteNumber), may("mem_size_mib", number), may("smt", flag),
		one("cpu_template", "C3", "T2", "T2S", "T2CL", "T2A", "V1N1", "None"), may("track_dirty_pages", flag),
		one("huge_pages", "None", "2M", "Transparent"))
	cpuBody = of(may("kvm_capabilities", anything), may("cpuid_modifiers", anything), may("msr_modifiers", anything),
		may("reg_modifiers", anything), may("vcpu_features", anything))
	bootBody  = of(must("kernel_image_path", text), may("boot_args", text), may("initrd_path", text))
	driveBody = of(must("drive_id", text), must("is_root_device", flag), may("partuuid", text), may("path_on_host", text),
		may("is_read_only", flag), one("cache_type", "Unsafe", "Writeback"), one("io_engine", "Sync", "Async"),
		sub("rate_limiter", rateLimiter), may("socket", text))
	drivePatch = of(must("drive_id", text), may("path_on_host", text), sub("rate_limiter", rateLimiter))
	netBody    = of(must("iface_id", text), must("host_dev_name", text), may("guest_mac", text), may("mtu", number).from(1, 16),
		sub("rx_rate_limiter", rateLimiter), sub("tx_rate_limiter", rateLimiter))
	netPatch    = of(must("iface_id", text), sub("rx_rate_limiter", rateLimiter), sub("tx_rate_limiter", rateLimiter))
	vsockBody   = of(may("vsock_id", text), must("guest_cid", number), must("uds_path", text))
	entropyBody = of(sub("rate_limiter", rateLimiter))
	balloonBody = of(must("amount_mib", number), must("deflate_on_oom", flag), may("stats_polling_interval_s", number),
		may("free_page_reporting", flag).from(1, 14), may("free_page_hinting", flag).from(1, 14))
	balloonPatch      = of(must("amount_mib", number))
	balloonStatsPatch = of(must("stats_polling_interval_s", number))
	hintingStart      = of(may("acknowledge_on_stop", flag))
	mmdsConfigBody    = of(one("version", "V1", "V2"), may("ipv4_address", text), field{name: "network_interfaces", kind: texts, required: true},
		may("imds_compat", flag))
	pmemBody    = of(must("id", text), must("path_on_host", text), may("root_device", flag), may("read_only", flag))
	hotplugBody = of(must("total_size_mib", number), may("block_size_mib", number), may("slot_size_mib", number))
	hotplugSize = of(must("requested_size_mib", number))
	actionBody  = of(one("action_type", "FlushMetrics", "InstanceStart", "SendCtrlAltDel").needed())
	vmBody      = of(one("state", "Paused", "Resumed").needed())
	createBody  = of(one("snapshot_type", "Full", "Diff"), must("snapshot_path", text), must("mem_file_path", text))
	backend     = of(one("backend_type", "File", "Uffd").needed(), must("backend_path", text))
	// The real one takes unknown fields in the override objects.
	netOverride   = &schema{lenient: true, fields: []field{must("iface_id", text), must("host_dev_name", text)}}
	vsockOverride = &schema{lenient: true, fields: []field{must("uds_path", text)}}
	loadBody      = of(must("snapshot_path", text), may("mem_file_path", text), sub("mem_backend", backend),
		may("enable_diff_snapshots", flag), may("track_dirty_pages", flag).from(1, 13), may("resume_vm", flag),
		field{name: "network_overrides", kind: objects, schema: netOverride},
		sub("vsock_override", vsockOverride).from(1, 16), may("clock_realtime", flag).from(1, 16),
		one("huge_pages", "Snapshot", "None", "Transparent", "2M").from(1, 17))
)

// resources are all that can be called, and when.
var resources map[string]resource

func init() {
	always := func(do func(*machine, settings, string, fields) answer) resource {
		return resource{do: do, before: true, after: true}
	}
	before := func(body *schema, do func(*machine, settings, string, fields) answer) resource {
		return resource{schema: body, do: do, before: true}
	}
	after := func(body *schema, do func(*machine, settings, string, fields) answer) resource {
		return resource{schema: body, do: do, after: true}
	}
	named := func(r resource, field string) resource { r.named = field; return r }
	since := func(r resource, major, minor int) resource { r.since = [2]int{major, minor}; return r }
	resources = map[string]resource{
		"GET /":               always((*machine).info),
		"GET /version":        always((*machine).version),
		"GET /vm/config":      always((*machine).wholeConfig),
		"GET /machine-config": always((*machine).getMachineConfig),
		"GET /balloon":        always((*machine).getBalloon),
		"GET /mmds":           always((*machine).getMmds),
		"PUT /mmds":           {raw: (*machine).putMmds, before: true, after: true},
		"PATCH /mmds":         {raw: (*machine).patchMmds, before: true, after: true},

		"PUT /logger":               before(loggerBody, (*machine).putLogger),
		"PUT /metrics":              before(metricsBody, (*machine).putMetrics),
		"PUT /serial":               since(before(serialBody, (*machine).putSerial), 1, 14),
		"PUT /machine-config":       before(machineBody, (*machine).putMachineConfig),
		"PATCH /machine-config":     before(machinePatch, (*machine).putMachineConfig),
		"PUT /cpu-config":           before(cpuBody, (*machine).putCPUConfig),
		"PUT /boot-source":          before(bootBody, (*machine).putBootSource),
		"PUT /drives/*":             named(before(driveBody, (*machine).putDrive), "drive_id"),
		"PUT /network-interfaces/*": named(before(netBody, (*machine).putNet), "iface_id"),
		"PUT /vsock":                before(vsockBody, (*machine).putVsock),
		"PUT /entropy":              before(entropyBody, (*machine).putEntropy),
		"PUT /balloon":              before(balloonBody, (*machine).putBalloon),
		"PUT /pmem/*":               since(named(before(pmemBody, (*machine).putUnsupported), "id"), 1, 14),
		"PUT /hotplug/memory":       since(before(hotplugBody, (*machine).putUnsupported), 1, 14),
		"PUT /mmds/config":          before(mmdsConfigBody, (*machine).putMmdsConfig),
		"PUT /snapshot/load":        before(loadBody, (*machine).load),
		// InstanceStart is before, all other actions after: they look themselves.
		"PUT /actions": {schema: actionBody, do: (*machine).act, before: true, after: true},

		"PATCH /vm":                    after(vmBody, (*machine).setState),
		"PUT /snapshot/create":         after(createBody, (*machine).create),
		"PATCH /drives/*":              named(after(drivePatch, (*machine).patchDrive), "drive_id"),
		"PATCH /network-interfaces/*":  named(after(netPatch, (*machine).patchNet), "iface_id"),
		"PATCH /balloon":               after(balloonPatch, (*machine).patchBalloon),
		"PATCH /balloon/statistics":    after(balloonStatsPatch, (*machine).patchBalloonStats),
		"GET /balloon/statistics":      after(nil, (*machine).balloonStats),
		"PATCH /balloon/hinting/start": since(after(hintingStart, (*machine).hinting), 1, 14),
		"PATCH /balloon/hinting/stop":  since(after(nil, (*machine).hinting), 1, 14),
		"GET /balloon/hinting/status":  since(after(nil, (*machine).hintingStatus), 1, 14),
		"GET /hotplug/memory":          since(after(nil, (*machine).getUnsupported), 1, 14),
		"PATCH /hotplug/memory":        since(after(hotplugSize, (*machine).putUnsupported), 1, 14),
	}
}
