package main

import (
	"fmt"
	"os"
	"time"
)

// -- snapshots

func (m *machine) create(s settings, _ string, body fields) answer {
	if m.current() != "Paused" {
		return bad("Create snapshot error: Cannot save the microVM state: Operation not allowed: save/restore unavailable while running")
	}
	began := time.Now()
	diff := body.text("snapshot_type", "Full") == "Diff"
	// The guest learns that its connections are gone; it is told before its state is saved.
	m.guest.hangUp()
	m.resetDue = true
	devices, err := m.guest.save()
	if err != nil {
		return bad("Create snapshot error: Cannot save the microVM state: %v", err)
	}
	if err := writeState(body.text("snapshot_path", ""), savedState{Format: s.SnapshotVersion, Version: s.Version,
		Guest: s.Guest, Config: m.config, Devices: devices}); err != nil {
		return bad("Create snapshot error: Cannot perform open on the snapshot backing file: %v", osError(err))
	}
	if err := m.writeMemory(body.text("mem_file_path", ""), diff); err != nil {
		return bad("Create snapshot error: Cannot perform open on the memory backing file: %v", osError(err))
	}
	if s.SnapshotBytesPerSecond > 0 {
		time.Sleep(time.Duration(float64(m.config.MemoryMib<<20)/float64(s.SnapshotBytesPerSecond)*1e9) - time.Since(began))
	}
	m.log.write("INFO", fmt.Sprintf("'create snapshot' VMM action took %d us.", time.Since(began).Microseconds()))
	return done
}

// writeMemory leaves a file of the same size as it is and writes into it, as the real one does.
func (m *machine) writeMemory(path string, diff bool) error {
	file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	defer file.Close()
	size := m.config.MemoryMib << 20
	if info, err := file.Stat(); err != nil {
		return err
	} else if info.Mode().IsRegular() && info.Size() != size {
		if err := file.Truncate(0); err != nil {
			return err
		}
		if err := file.Truncate(size); err != nil {
			return err
		}
	}
	if err := m.guest.copyMemory(file, diff); err != nil {
		return err
	}
	return file.Sync()
}

const restoreError = "Load snapshot error: Failed to restore from snapshot: "

func (m *machine) load(s settings, _ string, body fields) answer {
	deserializing := "An error occurred when deserializing the json body of a request: "
	switch {
	case body.has("mem_backend") && body.has("mem_file_path"):
		return bad("%s", deserializing+"too many fields: either `mem_backend` or `mem_file_path` exclusively is required.")
	case !body.has("mem_backend") && !body.has("mem_file_path"):
		return bad("%s", deserializing+"missing field: either `mem_backend` or `mem_file_path` is required.")
	case m.touched:
		return bad("Load snapshot error: Loading a microVM snapshot not allowed after configuring boot-specific resources.")
	}
	answered := m.restore(s, body)
	if answered.status >= 400 {
		answered.fatal = true
	}
	answered.deprecated = body.has("mem_file_path") || body.has("enable_diff_snapshots")
	return answered
}

func (m *machine) restore(s settings, body fields) answer {
	path := body.text("snapshot_path", "")
	state, err := readState(path)
	if err != nil {
		return bad(restoreError+"Failed to get snapshot state from file: %v", err)
	}
	if !compatible(state.Format, s.SnapshotVersion) {
		return bad(restoreError+"Failed to get snapshot state from file: Failed to load snapshot state from file: Snapshot file is for version %s, which isn't the supported %s", state.Format, s.SnapshotVersion)
	}
	memory := body.text("mem_file_path", "")
	if from := body.sub("mem_backend"); from != nil {
		if from.text("backend_type", "") == "Uffd" {
			return bad(restoreError + "Failed to load guest memory: Error creating guest memory from uffd: the fake has no userfaultfd")
		}
		memory = from.text("backend_path", "")
	}
	info, err := os.Stat(memory)
	if err == nil {
		err = readable(memory)
	}
	if err != nil {
		return bad(restoreError+"Failed to load guest memory: Error creating guest memory from file: Failed to load guest memory: %v", osError(err))
	}
	next := state.Config
	if info.Size() < next.MemoryMib<<20 {
		return bad(restoreError + "Failed to load guest memory: Error creating guest memory from file: Cannot create mmap region: The specified file offset and length is greater then file length")
	}
	next.Track = body.flag("track_dirty_pages") || body.flag("enable_diff_snapshots")
	overrides, _ := body["network_overrides"].([]fields)
	for _, override := range overrides {
		met := false
		for i := range next.Interfaces {
			if next.Interfaces[i].ID == override.text("iface_id", "") {
				next.Interfaces[i].Device = override.text("host_dev_name", "")
				met = true
			}
		}
		if !met {
			return bad(restoreError + "Failed to build microVM from snapshot: Unknown Network Device.")
		}
	}
	if override := body.sub("vsock_override"); override != nil {
		if next.Vsock == nil {
			return bad(restoreError + "Failed to build microVM from snapshot: Unknown Vsock Device.")
		}
		next.Vsock.Path = override.text("uds_path", "")
	}
	const devices = "Failed to build microVM from snapshot: Failed to restore devices: "
	for _, d := range next.Drives {
		if err := openDrive(d.Path, d.ReadOnly); err != nil {
			return bad(restoreError+devices+"Error restoring block device: Virtio backend error: Error manipulating the backing file: %v %s", osError(err), d.Path)
		}
	}
	if next.Vsock != nil {
		if m.vsock, err = listenVsock(m, next.Vsock.Path); err != nil {
			return bad(restoreError+devices+"Vsock: Error binding to the host-side Unix socket: %v", osError(err))
		}
	}
	m.mu.Lock()
	m.config = next
	m.mu.Unlock()
	restored, err := restoreGuest(m, s, memory, state)
	if err != nil {
		return bad(restoreError+"Failed to build microVM from snapshot: %v", err)
	}
	m.mu.Lock()
	m.guest, m.state = restored, "Paused"
	m.mu.Unlock()
	if body.flag("resume_vm") {
		if err := m.resume(); err != nil {
			return bad("Load snapshot error: Failed to resume microVM: %v", err)
		}
	}
	return done
}

// compatible is semantic versioning: equal major, and a minor that isn't newer than ours.
func compatible(file, ours string) bool {
	var fileMajor, fileMinor, major, minor int
	_, _ = fmt.Sscanf(file, "%d.%d", &fileMajor, &fileMinor)
	_, _ = fmt.Sscanf(ours, "%d.%d", &major, &minor)
	return fileMajor == major && fileMinor <= minor
}
