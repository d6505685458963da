package main

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

const (
	pageBytes  = 4096
	chunkBytes = 1 << 20
)

var zeroPage [pageBytes]byte

// copyMemory of a booted guest writes all that it ever touched; of a restored one what it maps, and over
// it the pages that are its own. A diff of one that tracks has the latter alone: more than what changed since
// the last snapshot, never less. Without tracking it has all that is resident, as in the real one.
func (g *qemuGuest) copyMemory(to *os.File, diff bool) error {
	size := g.machine.config.MemoryMib << 20
	blocks, err := allocated(to)
	if err != nil {
		return err
	}
	// In a file of holes zeros needn't be written, but those of a diff say something.
	sparse := blocks == 0 && !diff
	if g.own != nil {
		return copyData(g.own, to, size, sparse)
	}
	if !diff || !g.machine.config.Track {
		from, err := os.Open(g.base)
		if err != nil {
			return err
		}
		defer from.Close()
		if same, err := sameFile(from, to); err != nil {
			return err
		} else if !same {
			if err := copyData(from, to, size, sparse); err != nil {
				return err
			}
		}
	}
	return copyPrivate(g.command.Process.Pid, size, to)
}

func allocated(file *os.File) (int64, error) {
	var stat syscall.Stat_t
	err := syscall.Fstat(int(file.Fd()), &stat)
	return stat.Blocks, err
}

func sameFile(a, b *os.File) (bool, error) {
	one, err := a.Stat()
	if err != nil {
		return false, err
	}
	two, err := b.Stat()
	return err == nil && os.SameFile(one, two), err
}

// copyData copies what isn't a hole. Where the target isn't sparse, a hole of the source becomes one of
// the target.
func copyData(from, to *os.File, size int64, sparse bool) error {
	buffer := make([]byte, chunkBytes)
	for at := int64(0); at < size; {
		data, err := unix.Seek(int(from.Fd()), at, unix.SEEK_DATA)
		if errors.Is(err, unix.ENXIO) {
			data, err = size, nil
		}
		if err != nil {
			return err
		}
		data = min(data, size)
		if !sparse && data > at {
			if err := unix.Fallocate(int(to.Fd()), unix.FALLOC_FL_PUNCH_HOLE|unix.FALLOC_FL_KEEP_SIZE, at, data-at); err != nil {
				return err
			}
		}
		if at = data; at == size {
			return nil
		}
		hole, err := unix.Seek(int(from.Fd()), at, unix.SEEK_HOLE)
		if err != nil {
			return err
		}
		for hole = min(hole, size); at < hole; {
			n, err := from.ReadAt(buffer[:min(chunkBytes, hole-at)], at)
			if n == 0 {
				if errors.Is(err, io.EOF) {
					return nil
				}
				return err
			}
			if err := writePages(to, buffer[:n], at, sparse); err != nil {
				return err
			}
			at += int64(n)
		}
	}
	return nil
}

func writePages(to *os.File, data []byte, at int64, sparse bool) error {
	if !sparse {
		_, err := to.WriteAt(data, at)
		return err
	}
	// Runs of pages that aren't zero are written at once.
	for start := 0; start < len(data); {
		end := start
		for end < len(data) && !bytes.Equal(data[end:min(end+pageBytes, len(data))], zeroPage[:min(pageBytes, len(data)-end)]) {
			end = min(end+pageBytes, len(data))
		}
		if end > start {
			if _, err := to.WriteAt(data[start:end], at+int64(start)); err != nil {
				return err
			}
		}
		start = end + pageBytes
	}
	return nil
}

// Bits of /proc/PID/pagemap.
const (
	pagePresent = 1 << 63
	pageSwapped = 1 << 62
	pageOfFile  = 1 << 61
)

// copyPrivate writes the pages of the guest's memory of which the process has its own copy.
func copyPrivate(pid int, size int64, to *os.File) error {
	memory, err := os.Open(fmt.Sprintf("/proc/%d/mem", pid))
	if err != nil {
		return err
	}
	defer memory.Close()
	pages, err := os.Open(fmt.Sprintf("/proc/%d/pagemap", pid))
	if err != nil {
		return err
	}
	defer pages.Close()
	maps, err := guestMappings(pid, size)
	if err != nil {
		return err
	}
	buffer := make([]byte, chunkBytes)
	for _, m := range maps {
		entries := make([]byte, 8*(m.end-m.start)/pageBytes)
		if _, err := pages.ReadAt(entries, 8*int64(m.start/pageBytes)); err != nil {
			return err
		}
		own := func(page uint64) bool {
			entry := binary.LittleEndian.Uint64(entries[8*page:])
			return entry&pageSwapped != 0 || entry&pagePresent != 0 && entry&pageOfFile == 0
		}
		count := uint64(len(entries) / 8)
		for page := uint64(0); page < count; {
			if !own(page) {
				page++
				continue
			}
			end := page + 1
			for end < count && end-page < chunkBytes/pageBytes && own(end) {
				end++
			}
			run := buffer[:(end-page)*pageBytes]
			if _, err := memory.ReadAt(run, int64(m.start+page*pageBytes)); err != nil {
				return err
			}
			if _, err := to.WriteAt(run, int64(m.offset+page*pageBytes)); err != nil {
				return err
			}
			page = end
		}
	}
	return nil
}

type mapping struct{ start, end, offset uint64 }

// guestMappings finds the private writable mapping of a file that is as large as the memory.
func guestMappings(pid int, size int64) ([]mapping, error) {
	file, err := os.Open(fmt.Sprintf("/proc/%d/maps", pid))
	if err != nil {
		return nil, err
	}
	defer file.Close()
	byInode := map[string][]mapping{}
	lines := bufio.NewScanner(file)
	for lines.Scan() {
		words := strings.Fields(lines.Text())
		if len(words) < 6 || words[1] != "rw-p" || words[4] == "0" {
			continue
		}
		var m mapping
		if _, err := fmt.Sscanf(words[0]+" "+words[2], "%x-%x %x", &m.start, &m.end, &m.offset); err != nil {
			return nil, err
		}
		key := words[3] + " " + words[4]
		byInode[key] = append(byInode[key], m)
	}
	for _, all := range byInode {
		total := int64(0)
		for _, m := range all {
			total += int64(m.end - m.start)
		}
		if total == size {
			return all, nil
		}
	}
	return nil, errors.New("the guest's memory is not found in QEMU")
}
