package server

import (
	"context"
	"errors"
	"io"
	"strings"

	"google.golang.org/grpc"

	"space/agent/account"
	pb "space/agent/agentpb"
	"space/agent/fault"
	"space/agent/files"
	"space/agent/process"
)

const maxPath = 4096

// locate finds the acting user and makes the path absolute.
func (a *Agent) locate(user, path string) (account.Account, string, error) {
	if user == "" {
		user = a.Processes.Defaults().User
	}
	who, err := a.Accounts.Find(user)
	if err != nil {
		return who, "", err
	}
	if len(path) >= maxPath || strings.IndexByte(path, 0) >= 0 {
		return who, "", fault.Invalid("a path has less than %d bytes and no NUL", maxPath)
	}
	if strings.HasPrefix(path, "~") && path != "~" && !strings.HasPrefix(path, "~/") {
		return who, "", fault.Invalid("%q: only the acting user's own home has a short form", path)
	}
	return who, process.Expand(path, who.Home), nil
}

func wireEntry(e *files.Entry, names *account.Names) *pb.Entry {
	return &pb.Entry{
		Path: text(e.Path), Name: text(e.Name), Type: pb.EntryType(e.Type), Size: e.Size, Mode: e.Mode,
		Uid: e.UID, Gid: e.GID, Owner: names.User(e.UID), Group: names.Group(e.GID),
		ModifiedUnixNanos: e.ModifiedUnixNanos, SymlinkTarget: text(e.SymlinkTarget),
		ResolvedPath: text(e.ResolvedPath), TargetType: pb.EntryType(e.TargetType), TargetMode: e.TargetMode,
		Inode: e.Inode, Xattrs: xattrs(e.Xattrs),
	}
}

// text is for names that aren't UTF-8, which the link's strings must be.
func text(name string) string { return strings.ToValidUTF8(name, "\uFFFD") }

func xattrs(found map[string][]byte) map[string][]byte {
	for name := range found {
		if text(name) != name {
			delete(found, name)
		}
	}
	return found
}

// Stat describes a path.
func (a *Agent) Stat(_ context.Context, request *pb.StatRequest) (*pb.Entry, error) {
	who, path, err := a.locate(request.User, request.Path)
	if err != nil {
		return nil, err
	}
	entry, err := files.Stat(who, path)
	if err != nil {
		return nil, fault.Path(err, path)
	}
	return wireEntry(entry, a.Accounts.Names()), nil
}

// ListDir lists below a directory.
func (a *Agent) ListDir(request *pb.ListDirRequest, stream grpc.ServerStreamingServer[pb.Entry]) error {
	who, path, err := a.locate(request.User, request.Path)
	if err != nil {
		return err
	}
	names := a.Accounts.Names()
	return files.List(who, path, request.Depth, request.Xattrs, func(entry *files.Entry) error {
		return stream.Send(wireEntry(entry, names))
	})
}

// MakeDir makes a directory.
func (a *Agent) MakeDir(_ context.Context, request *pb.MakeDirRequest) (*pb.Entry, error) {
	who, path, err := a.locate(request.User, request.Path)
	if err != nil {
		return nil, err
	}
	entry, err := files.MakeDir(who, path, request.Mode, request.Parents)
	if err != nil {
		return nil, err
	}
	return wireEntry(entry, a.Accounts.Names()), nil
}

// Move renames.
func (a *Agent) Move(_ context.Context, request *pb.MoveRequest) (*pb.Entry, error) {
	who, source, err := a.locate(request.User, request.Source)
	if err != nil {
		return nil, err
	}
	_, destination, err := a.locate(request.User, request.Destination)
	if err != nil {
		return nil, err
	}
	entry, err := files.Move(who, source, destination, request.Parents, request.NoOverwrite)
	if err != nil {
		return nil, err
	}
	return wireEntry(entry, a.Accounts.Names()), nil
}

// Remove removes.
func (a *Agent) Remove(_ context.Context, request *pb.RemoveRequest) (*pb.RemoveReply, error) {
	who, path, err := a.locate(request.User, request.Path)
	if err != nil {
		return nil, err
	}
	removed, err := files.Remove(who, path, request.Recursive)
	if err != nil {
		return nil, err
	}
	return &pb.RemoveReply{Removed: removed}, nil
}

// ReadFile streams a file.
func (a *Agent) ReadFile(request *pb.ReadFileRequest, stream grpc.ServerStreamingServer[pb.ReadFileReply]) error {
	who, path, err := a.locate(request.User, request.Path)
	if err != nil {
		return err
	}
	reading, err := files.Read(who, path, request.Offset, request.Length)
	if err != nil {
		return err
	}
	defer reading.Close()
	first := &pb.ReadFileReply{Part: &pb.ReadFileReply_Entry{Entry: wireEntry(reading.Entry, a.Accounts.Names())}}
	if err := stream.Send(first); err != nil {
		return err
	}
	buf := make([]byte, MaxChunk)
	for {
		n, err := reading.Next(buf)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if err := stream.Send(&pb.ReadFileReply{Part: &pb.ReadFileReply_Data{Data: buf[:n]}}); err != nil {
			return err
		}
	}
}

// WriteFile takes a file.
func (a *Agent) WriteFile(stream grpc.ClientStreamingServer[pb.WriteFileRequest, pb.Entry]) error {
	first, err := stream.Recv()
	if err != nil {
		return err
	}
	header := first.GetHeader()
	if header == nil {
		return fault.Invalid("the first message is the header")
	}
	who, path, err := a.locate(header.User, header.Path)
	if err != nil {
		return err
	}
	writing, err := files.Write(who, files.Target{
		Path: path, Mode: header.Mode, Parents: header.Parents, Atomic: header.Atomic, Offset: header.Offset,
		ReplaceXattrs: header.ReplaceXattrs, XattrPrefix: header.XattrPrefix, Xattrs: header.Xattrs,
	})
	if err != nil {
		return err
	}
	for {
		message, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			break
		}
		if err == nil {
			err = writing.Append(message.GetData())
		}
		if err != nil {
			writing.Abort()
			return err
		}
	}
	entry, err := writing.Finish()
	if err != nil {
		writing.Abort()
		return err
	}
	return stream.SendAndClose(wireEntry(entry, a.Accounts.Names()))
}

// ReadTree streams a tree as tar.
func (a *Agent) ReadTree(request *pb.ReadTreeRequest, stream grpc.ServerStreamingServer[pb.Chunk]) error {
	who, path, err := a.locate(request.User, request.Path)
	if err != nil {
		return err
	}
	out := &chunks{send: func(data []byte) error { return stream.Send(&pb.Chunk{Data: data}) }}
	if err := files.ReadTree(who, path, a.Accounts.Names(), out); err != nil {
		return err
	}
	return out.flush()
}

// chunks gathers small writes into messages.
type chunks struct {
	send func([]byte) error
	buf  []byte
}

func (c *chunks) Write(data []byte) (int, error) {
	taken := len(data)
	for len(data) > 0 {
		if c.buf == nil {
			c.buf = make([]byte, 0, MaxChunk)
		}
		n := min(len(data), MaxChunk-len(c.buf))
		c.buf = append(c.buf, data[:n]...)
		data = data[n:]
		if len(c.buf) == MaxChunk {
			if err := c.flush(); err != nil {
				return 0, err
			}
		}
	}
	return taken, nil
}

func (c *chunks) flush() error {
	if len(c.buf) == 0 {
		return nil
	}
	err := c.send(c.buf)
	c.buf = c.buf[:0]
	return err
}

// WriteTree unpacks a tar stream.
func (a *Agent) WriteTree(stream grpc.ClientStreamingServer[pb.WriteTreeRequest, pb.WriteTreeReply]) error {
	first, err := stream.Recv()
	if err != nil {
		return err
	}
	header := first.GetHeader()
	if header == nil {
		return fault.Invalid("the first message is the header")
	}
	who, path, err := a.locate(header.User, header.Path)
	if err != nil {
		return err
	}
	in := &received{next: func() ([]byte, error) {
		message, err := stream.Recv()
		return message.GetData(), err
	}}
	done, err := files.WriteTree(who, path, header.KeepOwners, in)
	if err != nil {
		return err
	}
	// What follows the end of the archive is padding; the host must not be cut off while it sends it.
	if _, err := io.Copy(io.Discard, in); err != nil {
		return err
	}
	return stream.SendAndClose(&pb.WriteTreeReply{Files: done.Files, Bytes: done.Bytes})
}

// received reads messages as one stream.
type received struct {
	next func() ([]byte, error)
	left []byte
}

func (r *received) Read(into []byte) (int, error) {
	for len(r.left) == 0 {
		data, err := r.next()
		if err != nil {
			return 0, err
		}
		r.left = data
	}
	n := copy(into, r.left)
	r.left = r.left[n:]
	return n, nil
}
