package link

import "bytes"

// preface is what every HTTP/2 client sends first.
const preface = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"

const frameHeader = 9

// framing follows the frames of an HTTP/2 stream just far enough to see a new client's preface in it.
// The port of a restored guest, or of one whose host was replaced while it stood still, goes on with
// the bytes of another connection without any sign of the change but that.
type framing struct {
	left   int // bytes of the frame that are still to come
	header [frameHeader]byte
	have   int // bytes of the header
	begun  bool
}

// scan gives the position in data at which a new client's stream begins, or -1.
func (f *framing) scan(data []byte) int {
	at := 0
	if !f.begun {
		f.begun = true
		f.left = len(preface)
	} else if f.left > 0 && startsClient(data) {
		// Inside a frame that its host never ended. A read never joins bytes of two connections, so a
		// preface can only be at its start; what follows tells it from a frame's content.
		return 0
	}
	for at < len(data) {
		if f.left > 0 {
			step := min(f.left, len(data)-at)
			f.left -= step
			at += step
			continue
		}
		if f.have == 0 && startsPreface(data[at:]) {
			return at
		}
		step := copy(f.header[f.have:], data[at:])
		f.have += step
		at += step
		if f.have == frameHeader {
			f.left = int(f.header[0])<<16 | int(f.header[1])<<8 | int(f.header[2])
			f.have = 0
		}
	}
	return -1
}

// startsPreface is exact: no frame begins so, for it would be of 5 MiB and of a type that isn't.
func startsPreface(data []byte) bool {
	n := min(len(data), len(preface))
	return n >= frameHeader && string(data[:n]) == preface[:n]
}

// startsClient also wants the SETTINGS frame that follows a preface, when there is room for one.
func startsClient(data []byte) bool {
	if len(data) < len(preface) || string(data[:len(preface)]) != preface {
		return false
	}
	rest := data[len(preface):]
	if len(rest) == 0 {
		return true
	}
	settings := []byte{0x04, 0, 0, 0, 0, 0} // type, flags, stream
	return len(rest) >= frameHeader && bytes.Equal(rest[3:frameHeader], settings)
}
