package process

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"
)

// Kind says what an event of the log is.
type Kind uint8

// The kinds of events.
const (
	KindStarted Kind = iota
	KindStdout
	KindStderr
	KindPty
	KindGap
	KindExit
)

const (
	maxChunk       = 64 << 10
	maxLogBytes    = 4 << 20
	largeSegment   = 256 << 10
	smallSegment   = 4 << 10
	minRoom        = 1 << 10 // a segment with less room takes no further chunk, unless it is small
	segmentEvents  = 4096    // events of one segment
	eventCost      = 40      // bytes that an event's record counts for
	evictedRecords = 8192    // dropped events whose byte counts are remembered
	tightLogBytes  = 512 << 10
	totalLogBytes  = 32 << 20 // of all logs; beyond it every log is held to tightLogBytes
	sendBatch      = 16
	spareSegments  = 4
)

// Event is one entry of a log as a reader sees it. Data is only valid while it is delivered.
type Event struct {
	Seq      uint64
	Millis   int64
	Kind     Kind
	Data     []byte
	FirstSeq uint64 // gap: the first missing event
	Missing  uint64 // gap: bytes that are missing
}

type record struct {
	seq    uint64
	millis int64
	start  int32
	length int32
	kind   Kind
}

type segment struct {
	buf     []byte
	used    int
	records []record
}

func (s *segment) last() uint64 { return s.records[len(s.records)-1].seq }

// budget counts the bytes of all logs.
type budget struct {
	used   atomic.Int64
	mu     sync.Mutex
	spares []*segment
}

func (b *budget) segment(size int) *segment {
	b.used.Add(int64(size))
	if size == largeSegment {
		b.mu.Lock()
		defer b.mu.Unlock()
		if n := len(b.spares); n > 0 {
			spare := b.spares[n-1]
			b.spares = b.spares[:n-1]
			return spare
		}
	}
	return &segment{buf: make([]byte, size)}
}

func (b *budget) free(s *segment) {
	b.used.Add(-int64(len(s.buf)))
	if len(s.buf) == largeSegment {
		b.mu.Lock()
		defer b.mu.Unlock()
		if len(b.spares) < spareSegments {
			s.used, s.records = 0, s.records[:0]
			b.spares = append(b.spares, s)
		}
	}
}

// Log is the numbered output of one process. Bytes are read from the process's pipes straight into
// its segments, and sent from there.
type Log struct {
	budget *budget

	mu       sync.Mutex
	segments []*segment // oldest first
	size     int
	next     uint64 // seq of the next event
	kept     uint64 // seq of the oldest event that is kept
	taken    uint64 // bytes of all events so far
	dropped  uint64 // bytes of the dropped ones
	evicted  []evictedRecord
	readers  []*Reader
	room     chan struct{} // closed when a writer that found no room may try again
	done     bool
}

type evictedRecord struct {
	seq   uint64
	total uint64 // bytes up to and with this event
}

func newLog(b *budget) *Log {
	return &Log{budget: b, next: 1, kept: 1}
}

type fillResult int

const (
	filled fillResult = iota
	wouldBlock
	endOfFile
	noRoom
	discarded
)

// fill reads once from a non-blocking descriptor and appends what came as one event.
func (l *Log) fill(fd int, kind Kind) (fillResult, chan struct{}) {
	l.mu.Lock()
	if l.done {
		l.mu.Unlock()
		return discard(fd), nil
	}
	into := l.space()
	if into == nil {
		if l.room == nil {
			l.room = make(chan struct{})
		}
		room := l.room
		l.mu.Unlock()
		return noRoom, room
	}
	end := min(len(into.buf), into.used+maxChunk)
	n, err := readFD(fd, into.buf[into.used:end])
	if n > 0 {
		into.records = append(into.records, record{
			seq: l.next, millis: time.Now().UnixMilli(), kind: kind,
			start: int32(into.used), length: int32(n),
		})
		into.used += n
		l.next++
		l.taken += uint64(n)
		l.size += eventCost
		l.notify()
	}
	l.mu.Unlock()
	return readResult(n, err), nil
}

var scrap = sync.Pool{New: func() any { b := make([]byte, 16<<10); return &b }}

func discard(fd int) fillResult {
	buf := scrap.Get().(*[]byte)
	defer scrap.Put(buf)
	n, err := readFD(fd, *buf)
	if n > 0 {
		return discarded
	}
	return readResult(n, err)
}

func readFD(fd int, into []byte) (int, error) {
	for {
		n, err := unix.Read(fd, into)
		if !errors.Is(err, unix.EINTR) {
			return n, err
		}
	}
}

func readResult(n int, err error) fillResult {
	switch {
	case n > 0:
		return filled
	case err != nil && errors.Is(err, unix.EAGAIN):
		return wouldBlock
	default: // EIO is the end of a terminal
		return endOfFile
	}
}

// space gives a segment with room for a chunk, dropping the oldest output where no reader needs it;
// nil when a reader does.
func (l *Log) space() *segment {
	size := smallSegment
	if n := len(l.segments); n > 0 {
		tail := l.segments[n-1]
		free := len(tail.buf) - tail.used
		if len(tail.records) < segmentEvents && (free >= minRoom || free > 0 && len(tail.buf) <= smallSegment) {
			return tail
		}
		size = min(4*len(tail.buf), largeSegment)
	}
	limit := maxLogBytes
	if l.budget.used.Load() > totalLogBytes {
		limit = tightLogBytes
	}
	for l.size+size > limit && len(l.segments) > 0 {
		if !l.dropOldest() {
			return nil
		}
	}
	fresh := l.budget.segment(size)
	l.segments = append(l.segments, fresh)
	l.size += size
	return fresh
}

func (l *Log) dropOldest() bool {
	oldest := l.segments[0]
	if len(oldest.records) > 0 {
		last := oldest.last()
		for _, reader := range l.readers {
			if reader.cursor < last {
				return false
			}
		}
		for _, r := range oldest.records {
			l.dropped += uint64(r.length)
			l.evicted = append(l.evicted, evictedRecord{r.seq, l.dropped})
		}
		if len(l.evicted) > evictedRecords {
			l.evicted = append(l.evicted[:0], l.evicted[len(l.evicted)-evictedRecords/2:]...)
		}
		l.kept = last + 1
	}
	l.size -= len(oldest.buf) + eventCost*len(oldest.records)
	l.segments[0] = nil
	l.segments = l.segments[1:]
	l.budget.free(oldest)
	return true
}

// add appends an event that holds no output. It always fits.
func (l *Log) add(kind Kind, last bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.done {
		return
	}
	if len(l.segments) == 0 {
		l.segments = append(l.segments, l.budget.segment(smallSegment))
		l.size += smallSegment
	}
	tail := l.segments[len(l.segments)-1]
	tail.records = append(tail.records, record{seq: l.next, millis: time.Now().UnixMilli(), kind: kind})
	l.next++
	l.size += eventCost
	if last {
		l.done = true
		l.trim(tail)
		l.signalRoom()
	}
	l.notify()
}

// trim gives back the unused end of the last segment. Readers may hold views of the old buffer.
func (l *Log) trim(tail *segment) {
	if free := len(tail.buf) - tail.used; free > 0 {
		l.budget.used.Add(-int64(free))
		l.size -= free
		tail.buf = append(make([]byte, 0, tail.used), tail.buf[:tail.used]...)
	}
}

// forget drops all output of an ended log that nobody reads; its last event stays.
func (l *Log) forget() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for len(l.segments) > 0 {
		oldest := l.segments[0]
		if len(l.segments) == 1 {
			if oldest.used == 0 {
				return
			}
			end := oldest.records[len(oldest.records)-1]
			oldest.records = oldest.records[:len(oldest.records)-1]
			if len(oldest.records) > 0 && !l.dropOldest() {
				oldest.records = append(oldest.records, end)
				return
			}
			l.segments = []*segment{{records: []record{end}}}
			l.size = eventCost
			return
		}
		if !l.dropOldest() {
			return
		}
	}
}

// missing says how many bytes the dropped events after a seq held: exact for the last evictedRecords
// dropped events and for all of them, else at most that many.
func (l *Log) missing(after uint64) uint64 {
	before := uint64(0)
	for i := len(l.evicted) - 1; i >= 0 && after > 0; i-- {
		if l.evicted[i].seq <= after {
			before = l.evicted[i].total
			break
		}
	}
	return l.dropped - before
}

func (l *Log) notify() {
	for _, reader := range l.readers {
		select {
		case reader.wake <- struct{}{}:
		default:
		}
	}
}

func (l *Log) lastSeq() uint64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.next - 1
}

func (l *Log) close() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, s := range l.segments {
		if len(l.readers) > 0 { // their views must stay as they are
			l.budget.used.Add(-int64(len(s.buf)))
		} else {
			l.budget.free(s)
		}
	}
	l.segments = nil
	l.kept = l.next
}

// Reader follows a log. While it is attached nothing that it hasn't taken is dropped.
type Reader struct {
	log    *Log
	cursor uint64 // the last event that was delivered
	next   uint64 // the last event that was handed out for delivery
	wake   chan struct{}
}

func (l *Log) attach(after uint64) *Reader {
	reader := &Reader{log: l, cursor: after, next: after, wake: make(chan struct{}, 1)}
	l.mu.Lock()
	l.readers = append(l.readers, reader)
	l.mu.Unlock()
	return reader
}

func (r *Reader) detach() {
	l := r.log
	l.mu.Lock()
	defer l.mu.Unlock()
	for i, other := range l.readers {
		if other == r {
			l.readers = append(l.readers[:i], l.readers[i+1:]...)
			break
		}
	}
	l.signalRoom()
}

func (l *Log) signalRoom() {
	if l.room != nil {
		close(l.room)
		l.room = nil
	}
}

// deliver gives every event to send until the log has ended or the context has.
func (r *Reader) deliver(ctx context.Context, send func(Event) error) error {
	batch := make([]Event, 0, sendBatch)
	for {
		var ended bool
		batch, ended = r.collect(batch[:0])
		for _, event := range batch {
			if err := send(event); err != nil {
				return err
			}
		}
		if len(batch) > 0 {
			continue
		}
		if ended {
			return nil
		}
		select {
		case <-r.wake:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// collect marks what was collected before as delivered and gathers the next events.
func (r *Reader) collect(batch []Event) ([]Event, bool) {
	l := r.log
	l.mu.Lock()
	defer l.mu.Unlock()
	if r.cursor != r.next {
		r.cursor = r.next
		l.signalRoom()
	}
	if r.cursor+1 < l.kept {
		batch = append(batch, Event{
			Seq: l.kept - 1, Millis: time.Now().UnixMilli(), Kind: KindGap,
			FirstSeq: r.cursor + 1, Missing: l.missing(r.cursor),
		})
		r.next = l.kept - 1
		return batch, false
	}
	for _, s := range l.segments {
		if len(s.records) == 0 || s.last() <= r.cursor {
			continue
		}
		skip := 0
		if first := s.records[0].seq; r.cursor >= first {
			skip = int(r.cursor - first + 1)
		}
		for _, rec := range s.records[skip:] {
			if len(batch) == sendBatch {
				return batch, false
			}
			batch = append(batch, Event{
				Seq: rec.seq, Millis: rec.millis, Kind: rec.kind,
				Data: s.buf[rec.start : rec.start+rec.length],
			})
			r.next = rec.seq
		}
	}
	return batch, l.done
}
