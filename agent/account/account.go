// Package account reads the guest's own /etc/passwd and /etc/group. Both are the guest's to write,
// so every size is bounded, and an image without them still has a root.
package account

import (
	"bufio"
	"errors"
	"io"
	"os"
	"path"
	"strconv"
	"strings"

	"google.golang.org/grpc/codes"

	"space/agent/fault"
)

const (
	maxFileBytes  = 4 << 20
	maxLineBytes  = 64 << 10
	maxGroups     = 1024 // supplementary groups of one user
	maxNameLength = 256
	// DefaultPath is PATH where neither the sandbox nor the call gives one.
	DefaultPath = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
)

// Account is a user of the guest.
type Account struct {
	Name   string
	UID    uint32
	GID    uint32
	Groups []uint32
	Home   string
	Shell  string
}

// Directory looks accounts up below a root, "/" in a guest.
type Directory struct {
	Root string
}

// Find resolves a name or a decimal uid, optionally with ":group"; empty is root.
func (d Directory) Find(user string) (Account, error) {
	if user == "" {
		user = "root"
	}
	if len(user) > maxNameLength || strings.ContainsAny(user, "\n\x00") {
		return Account{}, fault.Invalid("a user name has at most %d characters and no line breaks", maxNameLength)
	}
	name, group, hasGroup := strings.Cut(user, ":")
	found, err := d.user(name)
	if err != nil {
		return Account{}, err
	}
	if hasGroup {
		gid, err := d.group(group)
		if err != nil {
			return Account{}, err
		}
		found.GID = gid
		found.Groups = []uint32{gid}
		return found, nil
	}
	found.Groups = d.groupsOf(found.Name, found.GID)
	return found, nil
}

func (d Directory) user(name string) (Account, error) {
	uid, numeric := number(name)
	var found *Account
	d.scan("etc/passwd", func(fields []string) bool {
		if len(fields) < 7 {
			return true
		}
		id, ok := number(fields[2])
		gid, okGroup := number(fields[3])
		if !ok || !okGroup {
			return true
		}
		if fields[0] == name || numeric && id == uid {
			found = &Account{Name: fields[0], UID: id, GID: gid, Home: fields[5], Shell: fields[6]}
			return false
		}
		return true
	})
	switch {
	case found != nil:
	case numeric:
		found = &Account{Name: name, UID: uid, GID: uid}
	case name == "root":
		found = &Account{Name: "root"}
	default:
		return Account{}, fault.New(codes.NotFound, "user_not_found", "the guest has no user %q", name)
	}
	if !path.IsAbs(found.Home) {
		found.Home = "/"
		if found.UID == 0 {
			found.Home = "/root"
		}
	}
	if found.Shell == "" {
		found.Shell = "/bin/sh"
	}
	return *found, nil
}

func (d Directory) group(name string) (uint32, error) {
	gid, numeric := number(name)
	if numeric {
		return gid, nil
	}
	found := false
	d.scan("etc/group", func(fields []string) bool {
		if len(fields) >= 3 && fields[0] == name {
			if id, ok := number(fields[2]); ok {
				gid, found = id, true
				return false
			}
		}
		return true
	})
	if !found {
		return 0, fault.New(codes.NotFound, "user_not_found", "the guest has no group %q", name)
	}
	return gid, nil
}

func (d Directory) groupsOf(name string, primary uint32) []uint32 {
	groups := []uint32{primary}
	d.scan("etc/group", func(fields []string) bool {
		if len(fields) < 4 {
			return true
		}
		id, ok := number(fields[2])
		if !ok || id == primary {
			return true
		}
		for _, member := range strings.Split(fields[3], ",") {
			if member == name {
				groups = append(groups, id)
				break
			}
		}
		return len(groups) < maxGroups
	})
	return groups
}

// Names maps uids and gids to names, for listings. Read it once per call.
type Names struct {
	users  map[uint32]string
	groups map[uint32]string
}

// Names reads both files.
func (d Directory) Names() *Names {
	names := &Names{users: map[uint32]string{}, groups: map[uint32]string{}}
	d.scan("etc/passwd", collect(names.users))
	d.scan("etc/group", collect(names.groups))
	return names
}

func collect(into map[uint32]string) func([]string) bool {
	return func(fields []string) bool {
		if len(fields) >= 3 {
			if id, ok := number(fields[2]); ok {
				if _, taken := into[id]; !taken {
					into[id] = fields[0]
				}
			}
		}
		return true
	}
}

// User is the name of a uid, or the number as text.
func (n *Names) User(uid uint32) string { return nameOr(n.users, uid) }

// Group is the name of a gid, or the number as text.
func (n *Names) Group(gid uint32) string { return nameOr(n.groups, gid) }

func nameOr(names map[uint32]string, id uint32) string {
	if name, ok := names[id]; ok {
		return name
	}
	if id == 0 {
		return "root"
	}
	return strconv.FormatUint(uint64(id), 10)
}

func (d Directory) scan(file string, each func(fields []string) bool) {
	opened, err := os.Open(path.Join("/", d.Root, file))
	if err != nil {
		return
	}
	defer opened.Close()
	if info, err := opened.Stat(); err != nil || !info.Mode().IsRegular() {
		return
	}
	lines := bufio.NewReaderSize(io.LimitReader(opened, maxFileBytes), 4096)
	for {
		line, err := readLine(lines)
		if line != "" && line[0] != '#' && !each(strings.Split(line, ":")) {
			return
		}
		if err != nil {
			return
		}
	}
}

// readLine gives a line without its end; of one that is too long it gives nothing.
func readLine(from *bufio.Reader) (string, error) {
	var line []byte
	for {
		part, err := from.ReadSlice('\n')
		if len(line)+len(part) <= maxLineBytes {
			line = append(line, part...)
		}
		if errors.Is(err, bufio.ErrBufferFull) {
			continue
		}
		return strings.TrimRight(string(line), "\r\n"), err
	}
}

func number(text string) (uint32, bool) {
	value, err := strconv.ParseUint(text, 10, 32)
	return uint32(value), err == nil && value != 1<<32-1
}
