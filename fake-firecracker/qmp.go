package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"sync"
	"time"
)

const qmpWait = 60 * time.Second

// qmp speaks with one QEMU: one command at a time, and events beside them.
type qmp struct {
	conn    *net.UnixConn
	events  func(name string, data map[string]any)
	turn    sync.Mutex
	answers chan qmpMessage

	mu   sync.Mutex
	seen []qmpMessage // events that somebody may wait for
	news chan struct{}
}

type qmpMessage struct {
	Greeting json.RawMessage        `json:"QMP"`
	Return   json.RawMessage        `json:"return"`
	Error    *struct{ Desc string } `json:"error"`
	Event    string                 `json:"event"`
	Data     map[string]any         `json:"data"`
}

func openQmp(conn *net.UnixConn, events func(string, map[string]any)) (*qmp, error) {
	q := &qmp{conn: conn, events: events, answers: make(chan qmpMessage, 1), news: make(chan struct{}, 1)}
	lines := bufio.NewScanner(conn)
	lines.Buffer(nil, 4<<20)
	_ = conn.SetReadDeadline(time.Now().Add(qmpWait))
	if !lines.Scan() {
		return nil, errors.New("it does not greet")
	}
	_ = conn.SetReadDeadline(time.Time{})
	go q.read(lines)
	if err := q.run("qmp_capabilities", nil, nil); err != nil {
		return nil, err
	}
	return q, q.run("migrate-set-capabilities",
		map[string]any{"capabilities": []map[string]any{{"capability": "events", "state": true}}}, nil)
}

func (q *qmp) read(lines *bufio.Scanner) {
	defer close(q.answers)
	for lines.Scan() {
		var message qmpMessage
		if json.Unmarshal(lines.Bytes(), &message) != nil {
			continue
		}
		if message.Event == "" {
			q.answers <- message
			continue
		}
		if message.Event == "MIGRATION" {
			q.mu.Lock()
			q.seen = append(q.seen, message)
			q.mu.Unlock()
			select {
			case q.news <- struct{}{}:
			default:
			}
		}
		q.events(message.Event, message.Data)
	}
}

// await waits for an event with one of two statuses; true is the first of them.
func (q *qmp) await(wait time.Duration, event, good, bad string) bool {
	deadline := time.After(wait)
	for {
		q.mu.Lock()
		for _, message := range q.seen {
			status := message.Data["status"]
			if message.Event == event && (status == good || status == bad) {
				q.seen = nil
				q.mu.Unlock()
				return status == good
			}
		}
		q.mu.Unlock()
		select {
		case <-q.news:
		case <-deadline:
			return false
		}
	}
}

func (q *qmp) run(command string, arguments map[string]any, into any) error {
	q.turn.Lock()
	defer q.turn.Unlock()
	request := map[string]any{"execute": command}
	if arguments != nil {
		request["arguments"] = arguments
	}
	text, err := json.Marshal(request)
	if err != nil {
		return err
	}
	if _, err := q.conn.Write(append(text, '\n')); err != nil {
		return err
	}
	select {
	case message, open := <-q.answers:
		switch {
		case !open:
			return errors.New("QEMU is gone")
		case message.Error != nil:
			return fmt.Errorf("%s: %s", command, message.Error.Desc)
		case into != nil:
			return json.Unmarshal(message.Return, into)
		}
		return nil
	case <-time.After(qmpWait):
		return fmt.Errorf("%s: no answer", command)
	}
}
