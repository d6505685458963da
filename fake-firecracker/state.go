package main

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc64"
	"os"
	"runtime"
)

// savedState is what a state file holds: magic, the rest as JSON, and a CRC-64 of both.
type savedState struct {
	Format  string `json:"format"`
	Version string `json:"version"`
	Guest   string `json:"guest"`
	Config  config `json:"config"`
	Devices []byte `json:"devices"`
}

const (
	magicAMD       = 0x0710_1984_8664_0000
	magicARM       = 0x0710_1984_AAAA_0000
	stateBytesMax  = 10 << 20
	stateBytesRest = 16
)

var crcTable = crc64.MakeTable(crc64.ECMA)

func stateMagic() uint64 {
	if runtime.GOARCH == "arm64" {
		return magicARM
	}
	return magicAMD
}

func writeState(path string, state savedState) error {
	text, err := json.Marshal(state)
	if err != nil {
		return err
	}
	all := append(binary.LittleEndian.AppendUint64(nil, stateMagic()), text...)
	all = binary.LittleEndian.AppendUint64(all, crc64.Checksum(all, crcTable))
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	defer file.Close()
	if _, err := file.Write(all); err != nil {
		return err
	}
	return file.Sync()
}

func readState(path string) (savedState, error) {
	var state savedState
	info, err := os.Stat(path)
	if err != nil {
		return state, fmt.Errorf("Failed to open snapshot file: %w", osError(err))
	}
	if info.Size() > stateBytesMax {
		return state, errors.New("Failed to load snapshot state from file: the file is too large")
	}
	all, err := os.ReadFile(path)
	if err != nil {
		return state, fmt.Errorf("Failed to open snapshot file: %w", osError(err))
	}
	if len(all) < stateBytesRest || binary.LittleEndian.Uint64(all) != stateMagic() {
		return state, errors.New("Failed to load snapshot state from file: Magic value does not match arch")
	}
	body, sum := all[:len(all)-8], binary.LittleEndian.Uint64(all[len(all)-8:])
	if crc := crc64.Checksum(body, crcTable); crc != sum {
		return state, fmt.Errorf("Failed to load snapshot state from file: CRC64 validation failed: %d", crc)
	}
	if err := json.Unmarshal(body[8:], &state); err != nil {
		return state, fmt.Errorf("Failed to load snapshot state from file: %w", err)
	}
	return state, nil
}
