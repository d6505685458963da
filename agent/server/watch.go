package server

import (
	"context"
	"path/filepath"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"

	pb "space/agent/agentpb"
	"space/agent/fault"
	"space/agent/files"
	"space/agent/watch"
)

const maxWatches = 256

var watchKinds = map[watch.Kind]pb.WatchEvent_Kind{
	watch.Create: pb.WatchEvent_CREATE, watch.Write: pb.WatchEvent_WRITE, watch.Remove: pb.WatchEvent_REMOVE,
	watch.Rename: pb.WatchEvent_RENAME, watch.Chmod: pb.WatchEvent_CHMOD, watch.Overflow: pb.WatchEvent_OVERFLOW,
	watch.Reached: pb.WatchEvent_MARK,
}

// named are the open watches that have a name.
type named struct {
	mu   sync.Mutex
	open map[string]*watch.Watcher
}

func (n *named) put(id string, w *watch.Watcher) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.open == nil {
		n.open = map[string]*watch.Watcher{}
	}
	n.open[id] = w
}

func (n *named) remove(id string, w *watch.Watcher) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.open[id] == w {
		delete(n.open, id)
	}
}

func (n *named) get(id string) *watch.Watcher {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.open[id]
}

// MarkWatch asks a watch to say when it has reported all there is.
func (a *Agent) MarkWatch(_ context.Context, request *pb.MarkWatchRequest) (*pb.MarkWatchReply, error) {
	w := a.named.get(request.Id)
	if w == nil {
		return nil, fault.New(codes.NotFound, "watch_not_found", "no watch %q is open", request.Id)
	}
	return &pb.MarkWatchReply{Mark: w.Mark()}, nil
}

// Watch reports changes until the host ends it.
func (a *Agent) Watch(request *pb.WatchRequest, stream grpc.ServerStreamingServer[pb.WatchEvent]) error {
	if !a.watches.take(maxWatches) {
		return fault.New(codes.ResourceExhausted, "too_many_watches", "%d watches are open already", maxWatches)
	}
	defer a.watches.release()
	who, root, err := a.locate(request.User, request.Path)
	if err != nil {
		return err
	}
	watcher, err := watch.Open(who, root, request.Recursive, request.AllowNetworkMounts)
	if err != nil {
		return err
	}
	defer watcher.Close()
	if request.Id != "" {
		a.named.put(request.Id, watcher)
		defer a.named.remove(request.Id, watcher)
	}
	stop := context.AfterFunc(stream.Context(), watcher.Close)
	defer stop()
	if err := stream.Send(&pb.WatchEvent{Kind: pb.WatchEvent_ARMED, UnixMillis: time.Now().UnixMilli()}); err != nil {
		return err
	}
	names := a.Accounts.Names()
	for {
		events, err := watcher.Next()
		if stream.Context().Err() != nil {
			return stream.Context().Err()
		}
		if err != nil {
			return err
		}
		now := time.Now().UnixMilli()
		for _, event := range events {
			message := &pb.WatchEvent{Kind: watchKinds[event.Kind], Name: text(event.Name), UnixMillis: now, Mark: event.Mark}
			if request.Entries && (event.Kind == watch.Create || event.Kind == watch.Write || event.Kind == watch.Chmod) {
				if entry, err := files.Stat(who, filepath.Join(root, event.Name)); err == nil {
					message.Entry = wireEntry(entry, names)
				}
			}
			if err := stream.Send(message); err != nil {
				return err
			}
		}
	}
}
