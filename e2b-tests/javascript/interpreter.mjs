// Drives a running service with E2B's published code interpreter SDK for JavaScript.
//
// Needs the template code-interpreter-v1. Reads the same variables as suite.mjs and prints the same
// lines.

import assert from 'node:assert/strict'
import fs from 'node:fs'
import path from 'node:path'
import { pathToFileURL } from 'node:url'

const root = path.resolve(process.env.SDK)
const about = JSON.parse(fs.readFileSync(path.join(root, 'package.json'), 'utf8'))
const sdk = await import(pathToFileURL(path.join(root, 'dist/index.mjs')))
const { Sandbox, NotFoundError, SandboxError, TimeoutError } = sdk
const run = `js-${about.version}-${process.pid}`

const checks = {
  async results(s) {
    const got = await s.runCode('x = 41\nx + 1')
    assert.equal(got.text, '42')
    assert.equal(got.error, undefined)
    const again = await s.runCode("f'ä {x}'")
    assert.equal(again.text, 'ä 41')
    assert.equal(again.executionCount, got.executionCount + 1)
    const rich = await s.runCode("from IPython.display import *\ndisplay(HTML('<b>h</b>'))\nMarkdown('m')")
    assert.equal(rich.results[0].html, '<b>h</b>')
    assert.deepEqual([rich.results[1].markdown, rich.results[1].isMainResult], ['m', true])
  },

  async streams(s) {
    const seen = []
    const got = await s.runCode("import sys, time\nprint('one ä')\ntime.sleep(2)\nprint('two', file=sys.stderr)", {
      onStdout: (m) => seen.push([m.line, m.error, Date.now()]),
      onStderr: (m) => seen.push([m.line, m.error, Date.now()]),
    })
    // A kernel hands its output on now and then, not line by line.
    assert.deepEqual([got.logs.stdout.join(''), got.logs.stderr.join('')], ['one ä\n', 'two\n'])
    assert.equal(seen.map((x) => x[0]).join(''), 'one ä\ntwo\n')
    assert.deepEqual([seen[0][1], seen.at(-1)[1]], [false, true])
    assert(seen.at(-1)[2] - seen[0][2] > 1000, 'the output came at the end')
  },

  async errors(s) {
    let told
    const got = await s.runCode('1 / 0', { onError: (e) => (told = e) })
    assert.deepEqual([got.error.name, got.error.value], ['ZeroDivisionError', 'division by zero'])
    assert.equal(told.name, 'ZeroDivisionError')
    await assert.rejects(s.runCode('1', { language: 'cobol' }), SandboxError)
    await assert.rejects(s.runCode('1', { context: { id: 'none' } }), NotFoundError)
  },

  async figures(s) {
    const got = await s.runCode("import matplotlib.pyplot as plt\nplt.bar(['a', 'b'], [1, 2])\nplt.show()")
    assert.equal(got.error, undefined)
    assert.equal(Buffer.from(got.results[0].png, 'base64').subarray(1, 4).toString(), 'PNG')
    assert.equal(got.results[0].chart.type, 'bar')
    assert.deepEqual(got.results[0].chart.elements.map((e) => [e.label, e.value]), [['a', 1], ['b', 2]])
  },

  async environments(s) {
    const code = "import os; ' '.join(str(os.environ.get(k)) for k in ('FROM_CREATE', 'MINE'))"
    assert.equal((await s.runCode(code, { envs: { MINE: '2' } })).text, '1 2')
    assert.equal((await s.runCode(code)).text, '1 None')
  },

  async contexts(s) {
    const c = await s.createCodeContext({ cwd: '/tmp' })
    assert.deepEqual([c.language, c.cwd], ['python', '/tmp'])
    await s.runCode('x = 2', { context: c })
    assert.equal((await s.runCode('x', { context: c })).text, '2')
    assert.equal((await s.runCode('x')).text, '41')
    assert((await s.listCodeContexts()).some((one) => one.id === c.id))
    await s.restartCodeContext(c)
    assert.equal((await s.runCode('x', { context: c })).error.name, 'NameError')
    await s.removeCodeContext(c.id)
    await assert.rejects(s.removeCodeContext(c), NotFoundError)
  },

  async timeLimits(s) {
    await assert.rejects(s.runCode('while True: pass', { timeoutMs: 3000 }), TimeoutError)
    assert.equal((await s.runCode('x')).text, '41')
  },

  async sleeps(s) {
    await s.pause()
    const again = await Sandbox.connect(s.sandboxId, { timeoutMs: 300_000 })
    assert.equal((await again.runCode('x')).text, '41')
  },
}

const wanted = process.argv.slice(2)
const began = Date.now()
let failed = 0
const box = await Sandbox.create({ timeoutMs: 300_000, metadata: { run }, envs: { FROM_CREATE: '1' }, requestTimeoutMs: 240_000 })
try {
  for (const [name, work] of Object.entries(checks)) {
    if (wanted.length && !wanted.includes(name)) continue
    const started = Date.now()
    try {
      await work(box)
      console.log(`ok ${name} (${((Date.now() - started) / 1000).toFixed(1)} s)`)
    } catch (e) {
      failed++
      const line = /interpreter\.mjs:(\d+)/.exec(e.stack)?.[1]
      console.log(`FAILED ${name}: ${e.name}: ${e.message} (line ${line})`)
    }
  }
} finally {
  for (const one of await Sandbox.list({ query: { metadata: { run } } }).nextItems()) await Sandbox.kill(one.sandboxId)
}
console.log(
  `npm @e2b/code-interpreter ${about.version}: ${failed} failed, ${Math.round((Date.now() - began) / 1000)} s`,
)
process.exit(failed ? 1 : 0)
