package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"sync"
	"time"
)

const connectionsMax = 10

// answer is what a call gives: a status with either a body or a fault.
type answer struct {
	status     int
	body       any
	fault      string
	deprecated bool
	// fatal ends the process after the answer.
	fatal bool
}

// api is the HTTP side. Calls are done one at a time, whichever connection they come by.
type api struct {
	machine *machine
	log     *logger
	metrics *metrics
	bodyMax int
	turn    sync.Mutex
}

func (a *api) serve(listener *net.UnixListener) {
	server := &http.Server{Handler: a, DisableGeneralOptionsHandler: true}
	_ = server.Serve(&boundedListener{UnixListener: listener})
	select {}
}

// boundedListener turns away the connection that is one too many.
type boundedListener struct {
	*net.UnixListener
	mu   sync.Mutex
	open int
}

const tooMany = "HTTP/1.1 503 \r\nServer: Firecracker API\r\nConnection: close\r\nContent-Type: application/json\r\n" +
	"Content-Length: 40\r\n\r\n{ \"error\": \"Too many open connections\" }"

func (l *boundedListener) Accept() (net.Conn, error) {
	for {
		conn, err := l.UnixListener.Accept()
		if err != nil {
			return nil, err
		}
		l.mu.Lock()
		room := l.open < connectionsMax
		if room {
			l.open++
		}
		l.mu.Unlock()
		if room {
			return &countedConn{Conn: conn, listener: l}, nil
		}
		_, _ = conn.Write([]byte(tooMany))
		conn.Close()
	}
}

type countedConn struct {
	net.Conn
	listener *boundedListener
	once     sync.Once
}

func (c *countedConn) Close() error {
	c.once.Do(func() {
		c.listener.mu.Lock()
		c.listener.open--
		c.listener.mu.Unlock()
	})
	return c.Conn.Close()
}

func (a *api) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	header := w.Header()
	header.Set("Server", "Firecracker API")
	header["Date"] = nil
	if len(r.TransferEncoding) > 0 {
		a.write(w, answer{status: 400, fault: "Unsupported header: Transfer-Encoding."})
		return
	}
	if r.ContentLength > int64(a.bodyMax) {
		w.Header().Set("Connection", "close")
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusRequestEntityTooLarge)
		fmt.Fprintf(w, "{ \"error\": \"Request payload with size %d is larger than the limit of %d allowed by server.\" }",
			r.ContentLength, a.bodyMax)
		return
	}
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	a.turn.Lock()
	defer a.turn.Unlock()
	settings := readSettings()
	call := r.Method + " " + r.URL.Path
	countCall(call)
	before := settings.faults.strike(call, false, a.log)
	if before.drop {
		hangUp(w)
		return
	}
	var done answer
	if before.answer != nil {
		done = *before.answer
	} else {
		done = a.call(r.Method, r.URL.Path, body)
		after := settings.faults.strike(call, true, a.log)
		if after.drop {
			hangUp(w)
			return
		}
		if after.answer != nil {
			done = *after.answer
		}
	}
	a.write(w, done)
	if done.fatal {
		_ = http.NewResponseController(w).Flush()
		// What was flushed is with the kernel: nothing that comes after can take it back.
		time.Sleep(time.Millisecond)
		a.log.write("ERROR", "RunWithApi error: Failed to build microVM: Loading snapshot failed.")
		fmt.Fprintln(os.Stderr, "Error: RunWithApi(BuildMicroVmFromRequests(Restore))")
		a.machine.end(exitGeneric)
	}
}

func hangUp(w http.ResponseWriter) {
	if conn, _, err := http.NewResponseController(w).Hijack(); err == nil {
		conn.Close()
	}
}

func (a *api) write(w http.ResponseWriter, done answer) {
	header := w.Header()
	header.Set("Connection", "keep-alive")
	if done.deprecated {
		header.Set("Deprecation", "true")
	}
	if done.status == http.StatusNoContent {
		w.WriteHeader(done.status)
		return
	}
	body := done.body
	if done.status >= 400 {
		body = map[string]string{"fault_message": done.fault}
	}
	text, err := json.Marshal(body)
	if err != nil {
		text = []byte("{}")
	}
	header.Set("Content-Type", "application/json")
	header.Set("Content-Length", fmt.Sprint(len(text)))
	w.WriteHeader(done.status)
	_, _ = io.Copy(w, bytes.NewReader(text))
}

// call does one call and counts it.
func (a *api) call(method, path string, body []byte) answer {
	a.log.write("INFO", fmt.Sprintf("The API server received a %s request on %q.", method, path))
	started := time.Now()
	done := a.route(method, path, body)
	group := strings.ToLower(method) + "_api_requests"
	first, _, _ := strings.Cut(strings.TrimPrefix(path, "/"), "/")
	name := strings.ReplaceAll(first, "-", "_")
	if name == "" {
		name = "instance_info"
	}
	a.metrics.add(group, name+"_count", 1)
	if done.status >= 400 {
		a.metrics.add(group, name+"_fails", 1)
		a.log.write("ERROR", fmt.Sprintf("Received Error. Status code: %d. Message: %s", done.status, done.fault))
	} else {
		a.log.write("INFO", fmt.Sprintf("The request was executed successfully. Status code: %d.", done.status))
	}
	if name := latencies[method+" "+path]; name != "" {
		a.metrics.store("latencies_us", name, time.Since(started).Microseconds())
	}
	return done
}

var latencies = map[string]string{
	"PUT /snapshot/create": "full_create_snapshot", "PUT /snapshot/load": "load_snapshot", "PATCH /vm": "pause_vm",
}

func bad(format string, args ...any) answer {
	return answer{status: http.StatusBadRequest, fault: fmt.Sprintf(format, args...)}
}

var done = answer{status: http.StatusNoContent}

func found(body any) answer { return answer{status: http.StatusOK, body: body} }

// resource is what a call's path stands for.
type resource struct {
	schema *schema
	// since is the version that brought it.
	since [2]int
	do    func(m *machine, s settings, id string, body fields) answer
	// before and after say whether it may be called before and after the start.
	before, after bool
	// named is the field that repeats the path's id.
	named string
	// lenient bodies may hold what isn't known.
	raw func(m *machine, s settings, body []byte) answer
}

func (a *api) route(method, path string, body []byte) answer {
	s := readSettings()
	tokens := strings.Split(strings.Trim(path, "/"), "/")
	switch method {
	case "GET":
		if len(body) > 0 {
			return bad("GET request cannot have a body.")
		}
	case "PUT", "PATCH":
		if len(body) == 0 && !strings.HasPrefix(path, "/balloon/hinting/") {
			if method == "PUT" {
				return bad("Empty PUT request.")
			}
			return bad("Empty PATCH request.")
		}
	case "DELETE":
		if len(body) > 0 {
			return bad("DELETE request cannot have a body.")
		}
	default:
		return bad("Invalid request method and/or path: %s %s.", method, tokens[0])
	}
	key, id, hasID := method+" /"+strings.Join(tokens, "/"), "", false
	what, known := resources[key]
	if !known && (len(tokens) == 2 || len(tokens) == 1) {
		what, known = resources[method+" /"+tokens[0]+"/*"]
		if known {
			if len(tokens) == 1 || tokens[1] == "" {
				return bad("The ID cannot be empty.")
			}
			id, hasID = tokens[1], true
		}
	}
	if !known || what.since != [2]int{} && !s.atLeast(what.since[0], what.since[1]) {
		if tokens[0] == "snapshot" && method == "PUT" && len(tokens) < 2 {
			return bad("Missing snapshot operation type.")
		}
		return bad("Invalid request method and/or path: %s %s.", method, tokens[0])
	}
	if hasID {
		for _, c := range id {
			if !(c == '_' || c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z') {
				return bad("API Resource IDs can only contain alphanumeric characters and underscores.")
			}
		}
	}
	given := fields{}
	if what.schema != nil {
		var err error
		if given, err = what.schema.read(body, &s); err != nil {
			return bad("An error occurred when deserializing the json body of a request: %v.", err)
		}
		if what.named != "" && given.text(what.named, "") != id {
			return bad("The id from the path does not match the id from the body!")
		}
	}
	started := a.machine.isStarted()
	if started && !what.after {
		return bad("The requested operation is not supported after starting the microVM.")
	}
	if !started && !what.before {
		return bad("The requested operation is not supported before starting the microVM.")
	}
	if what.raw != nil {
		return what.raw(a.machine, s, body)
	}
	return what.do(a.machine, s, id, given)
}
