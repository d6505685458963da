// Drives a running service with E2B's published JavaScript SDK.
//
// Reads E2B_API_KEY, E2B_API_URL and E2B_SANDBOX_URL as the SDK does, and SDK, the folder of the
// package. Prints one line for each check, "ok NAME" or "FAILED NAME: why", and ends with 1 if any
// failed.

import assert from 'node:assert/strict'
import fs from 'node:fs'
import http from 'node:http'
import path from 'node:path'
import { pathToFileURL } from 'node:url'

const root = path.resolve(process.env.SDK)
const about = JSON.parse(fs.readFileSync(path.join(root, 'package.json'), 'utf8'))
const sdk = await import(pathToFileURL(path.join(root, 'dist/index.mjs')))
const { Sandbox, CommandExitError, TimeoutError, NotFoundError, SandboxError } = sdk
const { AuthenticationError, InvalidArgumentError, FileType, FilesystemEventType } = sdk
const run = `js-${about.version}-${process.pid}`
const url = process.env.E2B_SANDBOX_URL
const sleep = (ms) => new Promise((done) => setTimeout(done, ms))

async function throws(kind, work, ...words) {
  let got
  try {
    got = await work()
  } catch (e) {
    assert(e instanceof kind, `not ${kind.name} but ${e.name}: ${e.message}`)
    for (const word of words) assert(e.message.includes(word), `'${word}' is not in: ${e.message}`)
    return e
  }
  assert.fail(`no ${kind.name} but ${JSON.stringify(got)}`)
}

async function until(work, ms = 10_000) {
  const end = Date.now() + ms
  for (;;) {
    const got = await work()
    if (got) return got
    assert(Date.now() < end, `${work} stayed ${got}`)
    await sleep(50)
  }
}

// A request of the client's own, with any Host.
function ask(to, { method = 'GET', headers = {}, body } = {}) {
  return new Promise((done, fail) => {
    const request = http.request(to, { method, headers }, (answer) => {
      const parts = []
      answer.on('data', (part) => parts.push(part))
      answer.on('end', () => done({ status: answer.statusCode, text: Buffer.concat(parts).toString() }))
    })
    request.on('error', fail)
    request.end(body)
  })
}

const checks = {
  async info(s) {
    const got = await s.getInfo()
    assert.equal(got.sandboxId, s.sandboxId)
    assert.equal(got.state, 'running')
    assert.deepEqual(got.metadata, { run, 'a b': 'c&d=ü%' })
    assert(got.startedAt < got.endAt)
    assert(await s.isRunning())
    const other = await Sandbox.connect(s.sandboxId)
    assert.equal((await other.commands.run('echo again')).stdout, 'again\n')
  },

  async lists(s) {
    const second = await Sandbox.create({ metadata: { run, second: '1' } })
    const seen = []
    const pages = Sandbox.list({ query: { metadata: { run } }, limit: 1 })
    while (pages.hasNext) seen.push(...(await pages.nextItems()).map((i) => i.sandboxId))
    assert.deepEqual(seen, [second.sandboxId, s.sandboxId])
    const mine = await Sandbox.list({ query: { metadata: { run, 'a b': 'c&d=ü%' }, state: ['running'] } }).nextItems()
    assert.deepEqual(mine.map((i) => i.sandboxId), [s.sandboxId])
    assert.equal(await second.kill(), true)
    assert.equal(await second.kill(), false)
    assert.equal(await second.isRunning(), false)
  },

  async timeouts(s) {
    await s.setTimeout(600_000)
    const end = (await s.getInfo()).endAt
    assert(end - Date.now() > 580_000 && end - Date.now() < 601_000)
    await Sandbox.connect(s.sandboxId, { timeoutMs: 60_000 })
    assert((await s.getInfo()).endAt >= end)
    await s.setTimeout(300_000)
    assert((await s.getInfo()).endAt < end)
    await throws(NotFoundError, () => Sandbox.setTimeout('inotthere0000', 1000))
  },

  async errors() {
    await throws(SandboxError, () => Sandbox.create('no-such-template'), '404')
    await throws(AuthenticationError, () => Sandbox.create({ apiKey: 'e2b_' + '0'.repeat(40) }))
    await throws(NotFoundError, () => Sandbox.connect('inotthere0000'))
    await throws(SandboxError, () => Sandbox.create({ network: { allowOut: ['1.1.1.1'], denyOut: ['0.0.0.0/0'] } }), '501')
  },

  async metrics(s) {
    const [last] = await until(async () => {
      const got = await s.getMetrics()
      return got.length && got
    })
    assert(last.cpuCount >= 1 && last.memTotal > 0 && last.diskTotal > 0)
  },

  async commands(s) {
    const got = await s.commands.run('echo out; echo err >&2; printf tail')
    assert.deepEqual([got.stdout, got.stderr, got.exitCode], ['out\ntail', 'err\n', 0])
    const e = await throws(CommandExitError, () => s.commands.run('echo bad >&2; exit 3'))
    assert.deepEqual([e.exitCode, e.stderr, e.error], [3, 'bad\n', 'exit status 3'])
    let outs = ''
    await s.commands.run('echo a; echo b', { onStdout: (t) => (outs += t) })
    assert.equal(outs, 'a\nb\n')
    assert.equal((await s.commands.run('cat')).stdout, '')
    assert.equal((await s.commands.run('pwd', { cwd: '/tmp' })).stdout, '/tmp\n')
    assert.equal((await s.commands.run('whoami', { user: 'root' })).stdout, 'root\n')
    assert.equal((await s.commands.run('echo $FROM_CREATE-$B', { envs: { B: '2' } })).stdout, '1-2\n')
    await throws(AuthenticationError, () => s.commands.run('true', { user: 'nobody-here' }), 'invalid username')
    await throws(InvalidArgumentError, () => s.commands.run('true', { cwd: '/no/such' }))
    const large = await s.commands.run("head -c 3000000 /dev/zero | tr '\\0' x")
    assert.equal(large.stdout.length, 3_000_000)
    const words = 'åäö 漢字 🎉'.repeat(3000)
    await s.files.write('words.txt', words)
    assert.equal((await s.commands.run('cat words.txt')).stdout, words)
  },

  async background(s) {
    const one = await s.commands.run('echo one; sleep 0.3; echo two; exit 4', { background: true })
    const e = await throws(CommandExitError, () => one.wait())
    assert.deepEqual([e.exitCode, e.stdout], [4, 'one\ntwo\n'])
    const two = await s.commands.run('sleep 100', { background: true })
    assert((await s.commands.list()).some((p) => p.pid === two.pid && p.cmd === '/bin/bash'))
    assert.equal(await two.kill(), true)
    await throws(CommandExitError, () => two.wait())
    await throws(CommandExitError, () => s.commands.run(`kill -0 ${two.pid}`))
    assert.equal(await s.commands.kill(two.pid), false)
    const three = await s.commands.run('sleep 0.5; echo late', { background: true })
    await three.disconnect()
    assert.equal((await (await s.commands.connect(three.pid)).wait()).stdout, 'late\n')
    await throws(NotFoundError, () => s.commands.connect(654321))
  },

  async stdin(s) {
    const cat = await s.commands.run('cat', { background: true, stdin: true })
    await s.commands.sendStdin(cat.pid, 'hello ')
    await s.commands.sendStdin(cat.pid, new TextEncoder().encode('world\n'))
    await s.commands.closeStdin(cat.pid)
    assert.equal((await cat.wait()).stdout, 'hello world\n')
  },

  async commandTimeout(s) {
    await throws(TimeoutError, () => s.commands.run('sleep 33', { timeoutMs: 1000 }))
    const slow = await s.commands.run('sleep 1; echo done', { background: true, timeoutMs: 0 })
    assert.equal((await slow.wait()).stdout, 'done\n')
  },

  async terminal(s) {
    let shown = ''
    const pty = await s.pty.create({ cols: 80, rows: 24, envs: { ABC: '123' }, onData: (d) => (shown += Buffer.from(d)) })
    const type = (text) => s.pty.sendInput(pty.pid, new TextEncoder().encode(text))
    await type('stty size; echo $ABC-$TERM\n')
    await until(() => shown.includes('24 80') && shown.includes('123-xterm-256color'))
    await s.pty.resize(pty.pid, { cols: 132, rows: 40 })
    await type('stty size\n')
    await until(() => shown.includes('40 132'))
    await type('exit 0\n')
    assert.equal((await pty.wait()).exitCode, 0)
    const other = await s.pty.create({ cols: 80, rows: 24, onData: () => {} })
    assert.equal(await s.pty.kill(other.pid), true)
    assert.equal(await s.pty.kill(other.pid), false)
    await other.wait().catch(() => {})
  },

  async files(s) {
    const f = s.files
    const wrote = await f.write('a/b/new file.txt', 'hello')
    assert.equal(wrote.path, '/home/user/a/b/new file.txt')
    assert.equal(wrote.name, 'new file.txt')
    assert.equal(await f.read('a/b/new file.txt'), 'hello')
    const every = Uint8Array.from({ length: 1_000_000 }, (_, i) => i)
    await f.write('all.bin', every.buffer)
    assert.deepEqual(Buffer.from(await f.read('all.bin', { format: 'bytes' })), Buffer.from(every))
    assert.equal((await f.read('all.bin', { format: 'blob' })).size, every.length)
    await f.write('blob', new Blob(['b1', 'b2']))
    assert.equal(await new Response(await f.read('blob', { format: 'stream' })).text(), 'b1b2')
    await f.write('stream', new Response('streamed').body)
    assert.equal(await f.read('stream'), 'streamed')
    await f.write('empty', '')
    assert.equal(await f.read('empty'), '')
    await f.write('quo"te ü.txt', 'q')
    assert.equal(await f.read('quo"te ü.txt'), 'q')
    const many = await f.write([{ path: '/tmp/m/one', data: '1' }, { path: 'm/two', data: '2' }])
    assert.deepEqual(many.map((m) => m.path), ['/tmp/m/one', '/home/user/m/two'])
    assert.equal(await f.read('m/two'), '2')
    await throws(NotFoundError, () => f.read('nope'), 'does not exist')
    await throws(InvalidArgumentError, () => f.read('/tmp'), 'is a directory')
    assert.equal(await f.makeDir('d/e'), true)
    assert.equal(await f.makeDir('d/e'), false)
    await f.write('d/one', '1')
    await s.commands.run('ln -s one d/link')
    assert.deepEqual((await f.list('d')).map((e) => [e.name, e.type]).sort(), [['e', FileType.DIR], ['link', FileType.FILE], ['one', FileType.FILE]])
    const info = await f.getInfo('d/link')
    assert.equal(info.symlinkTarget, '/home/user/d/one')
    assert.equal((await f.getInfo('d/one')).permissions, '-rw-r--r--')
    assert.equal((await f.rename('d/one', 'd/two')).path, '/home/user/d/two')
    assert.equal(await f.exists('d/one'), false)
    await f.remove('d')
    assert.equal(await f.exists('d'), false)
    const tagged = await f.write('meta', 'x', { metadata: { author: 'me' } })
    assert.deepEqual(tagged.metadata, { author: 'me' })
    assert.deepEqual((await f.getInfo('meta')).metadata, { author: 'me' })
    await f.write('zipped', 'squeeze '.repeat(1000), { gzip: true })
    assert.equal(await f.read('zipped', { gzip: true }), 'squeeze '.repeat(1000))
  },

  async watch(s) {
    await s.files.makeDir('watched')
    const seen = []
    const handle = await s.files.watchDir('watched', (e) => seen.push([e.name, e.type]))
    await s.files.write('watched/one', '1')
    await until(() => seen.length >= 3)
    await sleep(300)
    const kinds = FilesystemEventType
    assert.deepEqual(seen, [['one', kinds.CREATE], ['one', kinds.CHMOD], ['one', kinds.WRITE]])
    await handle.stop()
    await throws(NotFoundError, () => s.files.watchDir('nodir', () => {}))
  },

  async signedUrls(s) {
    await s.files.write('signed.txt', 'secret')
    assert.deepEqual(await ask(await s.downloadUrl('signed.txt')), { status: 200, text: 'secret' })
    const late = await s.downloadUrl('signed.txt', { useSignatureExpiration: -10_000 })
    assert.deepEqual(await ask(late), { status: 401, text: '{"code":401,"message":"signature is already expired"}' })
    const form = {
      method: 'POST',
      headers: { 'Content-Type': 'multipart/form-data; boundary=b' },
      body: '--b\r\nContent-Disposition: form-data; name="file"; filename="up.txt"\r\n\r\nupload\r\n--b--\r\n',
    }
    assert.equal((await ask(await s.uploadUrl('up/loaded.txt'), form)).status, 200)
    assert.equal(await s.files.read('up/loaded.txt'), 'upload')
    assert.equal((await ask(await s.uploadUrl(), form)).status, 200)
    assert.equal(await s.files.read('up.txt'), 'upload')
  },

  async host(s) {
    await s.commands.run('cd /tmp && echo served > index.html && exec python3 -m http.server 8123 --bind 127.0.0.1', { background: true, timeoutMs: 0 })
    const Host = s.getHost(8123)
    await until(async () => (await ask(`${url}/index.html`, { headers: { Host } })).text === 'served\n')
    const closed = await ask(url, { headers: { Host: s.getHost(8124) } })
    assert.equal(closed.status, 502)
    assert(JSON.parse(closed.text).message.includes('port is not open'))
  },

  async git(s) {
    if (!s.git) return
    await s.git.init('/home/user/repo', { initialBranch: 'main' })
    await s.git.configureUser('A B', 'a@example.com')
    await s.files.write('repo/x.txt', 'x')
    await s.git.add('/home/user/repo')
    await s.git.commit('/home/user/repo', 'first')
    assert.equal((await s.git.status('/home/user/repo')).currentBranch, 'main')
  },

  async many(s) {
    const all = await Promise.all(Array.from({ length: 20 }, (_, i) => s.commands.run(`echo ${i}`)))
    assert.deepEqual(all.map((r) => r.stdout), Array.from({ length: 20 }, (_, i) => `${i}\n`))
  },

  async pause(s) {
    const handle = await s.commands.run('sleep 1000', { background: true, timeoutMs: 0 })
    assert.notEqual(await s.pause(), false)
    assert.equal(await s.isRunning(), false)
    assert.equal((await s.getInfo()).state, 'paused')
    assert.equal(await s.pause(), false)
    await handle.disconnect().catch(() => {})
    const again = await s.connect({ timeoutMs: 300_000 })
    assert(await again.isRunning())
    assert((await again.commands.list()).some((p) => p.pid === handle.pid))
    await again.commands.kill(handle.pid)
  },

  async pauseOfTheDiskAlone() {
    const boot = 'cat /proc/sys/kernel/random/boot_id'
    const box = await Sandbox.create({ timeoutMs: 300_000, metadata: { run } })
    await box.files.write('kept', 'kept')
    const first = (await box.commands.run(boot)).stdout
    await box.pause({ keepMemory: false })
    assert.equal(await box.isRunning(), false)
    const again = await box.connect({ timeoutMs: 300_000 })
    assert.equal(await again.files.read('kept'), 'kept')
    assert.notEqual((await again.commands.run(boot)).stdout, first)
    await again.kill()
  },

  async snapshots(s) {
    await s.files.write('state', 'before')
    const snapshot = await s.createSnapshot()
    await s.files.write('state', 'after')
    const copy = await Sandbox.create(snapshot.snapshotId, { metadata: { run } })
    assert.equal(await copy.files.read('state'), 'before')
    await copy.kill()
    assert.equal(await Sandbox.deleteSnapshot(snapshot.snapshotId), true)
    assert.equal(await Sandbox.deleteSnapshot(snapshot.snapshotId), false)
  },

  async forks(s) {
    if (!s.fork) return
    await s.files.write('state', 'shared')
    const [copy] = await s.fork()
    await copy.files.write('state', 'own')
    assert.equal(await s.files.read('state'), 'shared')
    await copy.kill()
  },

  async killedWhileRunning() {
    const victim = await Sandbox.create({ metadata: { run } })
    await victim.files.makeDir('w')
    let left
    await victim.files.watchDir('w', () => {}, { onExit: (e) => (left = e ?? 'no error') })
    const handle = await victim.commands.run('sleep 1000', { background: true, timeoutMs: 0 })
    setTimeout(() => Sandbox.kill(victim.sandboxId), 300)
    await throws(TimeoutError, () => handle.wait())
    await until(() => left)
    assert(left instanceof TimeoutError, `the watch ended with ${left}`)
    assert.equal(await victim.isRunning(), false)
    await throws(NotFoundError, () => victim.getInfo())
  },
}

const wanted = process.argv.slice(2)
const began = Date.now()
let failed = 0
const box = await Sandbox.create({ timeoutMs: 300_000, metadata: { run, 'a b': 'c&d=ü%' }, envs: { FROM_CREATE: '1' } })
try {
  for (const [name, work] of Object.entries(checks)) {
    if (wanted.length && !wanted.includes(name)) continue
    const started = Date.now()
    try {
      await work(box)
      console.log(`ok ${name} (${((Date.now() - started) / 1000).toFixed(1)} s)`)
    } catch (e) {
      failed++
      const line = /suite\.mjs:(\d+)/.exec(e.stack)?.[1]
      console.log(`FAILED ${name}: ${e.name}: ${e.message} (line ${line})`)
    }
  }
} finally {
  for (const one of await Sandbox.list({ query: { metadata: { run } } }).nextItems()) await Sandbox.kill(one.sandboxId)
}
console.log(`npm e2b ${about.version}: ${failed} failed, ${Math.round((Date.now() - began) / 1000)} s`)
process.exit(failed ? 1 : 0)
