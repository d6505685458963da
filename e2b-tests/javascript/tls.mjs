// Drives a running service over TLS with E2B's published JavaScript SDK, as a program does that sets
// nothing but E2B_DOMAIN and E2B_API_KEY: every name below the domain is asked for.
//
// Reads those two, NODE_EXTRA_CA_CERTS for the authority, SDK (the folder of the package), and PROXY:
// where names are led to this machine.
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import http from 'node:http'
import https from 'node:https'
import { setTimeout as sleep } from 'node:timers/promises'
import tls from 'node:tls'
import { pathToFileURL } from 'node:url'

const about = JSON.parse(readFileSync(`${process.env.SDK}/package.json`, 'utf8'))
const { Sandbox, TimeoutError } = await import(pathToFileURL(`${process.env.SDK}/dist/index.mjs`))
const proxy = process.env.PROXY

// What https://… gives, asked through the proxy.
const ask = (url) =>
  new Promise((resolve, reject) => {
    const { host, hostname } = new URL(url)
    const { hostname: at, port } = new URL(proxy)
    http
      .request({ host: at, port, method: 'CONNECT', path: `${hostname}:443` })
      .on('connect', (_, socket) => {
        const secure = tls.connect({ socket, servername: hostname, ALPNProtocols: ['http/1.1'] })
        https
          .get(url, { createConnection: () => secure, headers: { Host: host } }, (answer) => {
            let text = ''
            answer.on('data', (part) => (text += part))
            answer.on('end', () => resolve({ status: answer.statusCode, text }))
          })
          .on('error', reject)
      })
      .on('error', reject)
      .end()
  })

async function until(work) {
  for (const end = Date.now() + 30_000; ; await sleep(50)) {
    if (await work()) return
    assert(Date.now() < end, `${work} stayed false`)
  }
}

const box = await Sandbox.create({ timeoutMs: 300_000, proxy })
try {
  assert.equal((await box.commands.run('echo over tls')).stdout, 'over tls\n')
  await box.files.write('/tmp/www/index.html', 'served\n')
  await box.commands.run('cd /tmp/www && exec python3 -m http.server 8123 --bind 127.0.0.1', { background: true, timeoutMs: 0 })
  const host = box.getHost(8123)
  assert.equal(host, `8123-${box.sandboxId}.${process.env.E2B_DOMAIN}`)
  await until(async () => (await ask(`https://${host}/index.html`)).text === 'served\n')
  const closed = await ask(`https://${box.getHost(8124)}/`)
  assert.equal(closed.status, 502)
  assert(JSON.parse(closed.text).message.includes('port is not open'))
  await box.files.write('signed.txt', 'secret')
  assert.deepEqual(await ask(await box.downloadUrl('signed.txt')), { status: 200, text: 'secret' })
  const handle = await box.commands.run('sleep 1000', { background: true, timeoutMs: 0 })
  const killed = sleep(300).then(() => Sandbox.kill(box.sandboxId, { proxy }))
  await assert.rejects(() => handle.wait(), TimeoutError)
  await killed
  assert.equal(await box.isRunning(), false)
} finally {
  await Sandbox.kill(box.sandboxId, { proxy })
}
console.log(`npm e2b ${about.version} over TLS: 0 failed`)
process.exit(0)
