"""Drives a command line in a real terminal. Arguments: what to do, then the command.

Prints the screen and fails when something isn't as a terminal has to be.
"""
import fcntl, os, re, select, signal, struct, subprocess, sys, termios, time

what, argv = sys.argv[1], sys.argv[2:]
master, slave = os.openpty()
screen = b''
seen = b''


def size(rows, cols):
    fcntl.ioctl(master, termios.TIOCSWINSZ, struct.pack('HHHH', rows, cols, 0, 0))


def own():
    os.setsid()
    fcntl.ioctl(slave, termios.TIOCSCTTY, 0)


def expect(pattern, seconds=60):
    """Waits for a pattern after what was expected last."""
    global screen, seen
    end = time.monotonic() + seconds
    while True:
        found = re.search(pattern, screen)
        if found:
            screen = screen[found.end():]
            return found
        left = end - time.monotonic()
        if left <= 0 or not select.select([master], [], [], left)[0]:
            sys.exit('no %r in %r' % (pattern, screen))
        part = os.read(master, 65536)
        sys.stdout.buffer.write(part)
        sys.stdout.flush()
        screen += part
        seen += part


def send(text):
    os.write(master, text)


size(30, 100)
before = termios.tcgetattr(slave)
child = subprocess.Popen(argv, stdin=slave, stdout=slave, stderr=slave, preexec_fn=own)


def ended(status):
    got = child.wait(60)
    if got != status:
        sys.exit('status %d, not %d: %r' % (got, status, screen))
    if termios.tcgetattr(slave) != before:
        sys.exit('the terminal was not put back')


def raw():
    if termios.tcgetattr(slave)[3] & (termios.ICANON | termios.ECHO | termios.ISIG):
        sys.exit('the terminal is not raw')


expect(rb'\$ ')
if re.search(rb'\x1b\[(c|\?u|\?\d+\$p)', seen):
    # A terminal would answer, and the shell in the sandbox would read the answer.
    sys.exit('the terminal was asked something')
raw()
if what == 'work':
    send(b'stty size; echo $((6*7))\r')
    expect(rb'30 100\r\n42\r\n')
    send(b"trap 'echo resized to $(stty size)' WINCH; echo trap $((1+1))\r")
    expect(rb'[\r\n]trap 2\r')
    expect(rb'\$ ')
    size(41, 120)
    os.killpg(child.pid, signal.SIGWINCH)
    send(b'\r')
    expect(rb'resized to 41 120')
    send(b"sh -c 'echo begun $((0+1)); exec sleep 1000'\r")
    expect(rb'[\r\n]begun 1\r')
    send(b'\x03')
    expect(rb'\$ ')
    send(b'echo status $?\r')
    expect(rb'status 130')
    send(b"sh -c 'echo begun $((1+1)); exec sleep 1001'\r")
    expect(rb'[\r\n]begun 2\r')
    send(b'\x1a')
    expect(rb'Stopped')
    send(b'kill -9 %1; wait; echo reading $((2+1)); cat > /dev/null\r')
    expect(rb'[\r\n]reading 3\r')
    send(b'\x04')
    send(b'echo end of file\r')
    expect(rb'[\r\n]end of file\r')
    send(b'exit 7\r')
    ended(7)
elif what == 'kill':
    send(b'echo here\r')
    expect(rb'[\r\n]here\r')
    child.terminate()
    ended(143)
elif what == 'detach':
    send(b'V=kept; echo marked\r')
    expect(rb'[\r\n]marked\r')
    expect(rb'\$ ')
    send(b'\r~.')
    session = expect(rb'space attach ([a-z0-9]+) ([a-z0-9]+)').group(2)
    ended(0)
    # Come back: what was shown is shown again, and the shell is the same.
    child = subprocess.Popen(
        argv[:-2] + ['attach', argv[-1], session.decode()],
        stdin=slave, stdout=slave, stderr=slave, preexec_fn=own)
    expect(rb'[\r\n]marked\r')
    expect(rb'\$ ')
    send(b'echo $V again\r')
    expect(rb'[\r\n]kept again\r')
    send(b'exit\r')
    ended(0)
