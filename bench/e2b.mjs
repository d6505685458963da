// The client's side of the section "e2b": E2B's published JavaScript SDK. Takes a word a line and
// answers each with a line of JSON.
//
//   turn        create, commands.run("echo hi"); milliseconds from before the one to after the other
//   open N      a sandbox for files; write N random MiB to it and read them back
import { randomFillSync } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { createInterface } from 'node:readline'
import { pathToFileURL } from 'node:url'

const about = JSON.parse(readFileSync(`${process.env.SDK}/package.json`, 'utf8'))
const { Sandbox } = await import(pathToFileURL(`${process.env.SDK}/dist/index.mjs`))

async function turn() {
  const began = performance.now()
  const box = await Sandbox.create({ timeoutMs: 120_000 })
  const { stdout } = await box.commands.run('echo hi')
  const millis = performance.now() - began
  await box.kill()
  if (stdout !== 'hi\n') throw new Error(`the output is ${JSON.stringify(stdout)}`)
  return { millis }
}

async function open(mib) {
  const box = await Sandbox.create({ timeoutMs: 600_000 })
  const sent = new Uint8Array(mib << 20)
  for (let at = 0; at < sent.length; at += 1 << 20) randomFillSync(sent, at, 1 << 20)
  const began = performance.now()
  await box.files.write('big', new Blob([sent]), { requestTimeoutMs: 0 })
  const written = performance.now()
  const got = await box.files.read('big', { format: 'bytes', requestTimeoutMs: 0 })
  const read = performance.now()
  await box.kill()
  if (Buffer.compare(Buffer.from(sent.buffer), Buffer.from(got.buffer, got.byteOffset, got.length)) !== 0) {
    throw new Error('other bytes came back')
  }
  return { up: written - began, down: read - written }
}

console.log(JSON.stringify({ version: about.version }))
for await (const line of createInterface({ input: process.stdin })) {
  const [word, argument] = line.split(' ')
  try {
    console.log(JSON.stringify(word === 'turn' ? await turn() : await open(Number(argument))))
  } catch (e) {
    console.log(JSON.stringify({ error: `${e.name}: ${e.message}` }))
  }
}
