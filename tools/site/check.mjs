// Opens the site in headless Chromium, follows all links between its pages, uses the search, and takes
// screenshots: tools/site/check SITE PICTURES
// Requests to other hosts, errors of scripts, and links to pages or headings that do not exist are failures.
import fs from 'node:fs'
import http from 'node:http'
import path from 'node:path'
import { createRequire } from 'node:module'

const [site, pictures, modules] = process.argv.slice(2)
const { chromium } = createRequire(path.join(modules, 'x'))('playwright-core')

const types = { '.html': 'text/html', '.js': 'text/javascript', '.css': 'text/css', '.svg': 'image/svg+xml', '.json': 'application/json', '.woff2': 'font/woff2' }
const problems = []

// serve serves the files of the site on loopback, as a static file server does.
function serve() {
  const server = http.createServer((request, response) => {
    const { pathname } = new URL(request.url, 'http://site')
    const file = path.join(site, decodeURIComponent(pathname.endsWith('/') ? pathname + 'index.html' : pathname))
    fs.readFile(file, (err, content) => {
      response.writeHead(err ? 404 : 200, { 'Content-Type': types[path.extname(file)] ?? 'text/plain' })
      response.end(content)
    })
  })
  return new Promise((done) => server.listen(0, '127.0.0.1', () => done(server)))
}

// open returns a page that reports what must not happen.
async function open(browser, origin, size) {
  const context = await browser.newContext({ viewport: size })
  await context.route((url) => url.origin !== origin && url.protocol !== 'data:', (route) => {
    problems.push(`${page.url()}: requests ${route.request().url()}`)
    return route.abort()
  })
  const page = await context.newPage()
  page.on('pageerror', (err) => problems.push(`${page.url()}: ${err.message}`))
  page.on('console', (message) => message.type() === 'error' && problems.push(`${page.url()}: ${message.text()}`))
  page.on('response', (response) => response.ok() || problems.push(`${page.url()}: ${response.url()} answers ${response.status()}`))
  return page
}

// follow opens every page that links lead to, and returns the number of pages and links.
async function follow(page, origin) {
  const anchors = new Map() // the headings of each page
  const links = [] // from a page to an address with a fragment
  const queue = [origin + '/']
  const seen = new Set(queue)
  while (queue.length) {
    const address = queue.shift()
    try {
      await page.goto(address)
    } catch (err) {
      problems.push(`${address}: ${err.message.split('\n')[0]}`)
      anchors.set(address, new Set())
      continue
    }
    const found = await page.evaluate(() => ({
      ids: [...document.querySelectorAll('[id]')].map((element) => element.id),
      hrefs: [...document.querySelectorAll('a[href]')].map((element) => element.href),
      heading: document.querySelectorAll('h1').length
    }))
    if (found.heading !== 1) problems.push(`${address}: ${found.heading} headings of the first level, want 1`)
    anchors.set(address, new Set(found.ids))
    for (const href of found.hrefs.filter((href) => href.startsWith(origin))) {
      links.push({ address, href })
      const next = href.split('#')[0]
      if (!seen.has(next)) queue.push(next)
      seen.add(next)
    }
  }
  for (const { address, href } of links) {
    const [to, fragment] = href.split('#')
    if (fragment && !anchors.get(to).has(decodeURIComponent(fragment))) problems.push(`${address}: no heading for ${href}`)
  }
  return { pages: anchors.size, links: links.length, missing: unlinked(anchors, origin) }
}

// unlinked returns the pages of the site that no link leads to.
function unlinked(anchors, origin) {
  const reached = new Set([...anchors.keys()].map((address) => new URL(address, origin).pathname.replace(/\/$/, '/index.html')))
  return fs.readdirSync(site, { recursive: true })
    .filter((file) => file.endsWith('.html') && file !== '404.html' && !reached.has('/' + file.split(path.sep).join('/')))
}

// search types words into the search and opens the first result that leads to a page, if there is one.
async function search(page, origin, words, want, picture) {
  await page.goto(origin + '/')
  await page.locator('#local-search button').click()
  await page.locator('#localsearch-input').fill(words)
  const results = page.locator('.VPLocalSearchBox .result')
  await results.first().waitFor()
  if (picture) await page.screenshot({ path: picture })
  const found = await results.evaluateAll((all) => all.map((result) => result.getAttribute('href')))
  const index = found.findIndex((href) => href.includes(want))
  if (index < 0) {
    problems.push(`the search for "${words}" leads to ${found.join(' ')}, want ${want}`)
    return
  }
  await results.nth(index).click()
  await page.waitForURL((url) => url.pathname === new URL(found[index], origin).pathname)
}

// shoot takes a screenshot of a page at a width.
async function shoot(browser, origin, width) {
  const page = await open(browser, origin, { width, height: 900 })
  for (const [name, address] of [['home', '/'], ['guide', '/guide/02-get-started.html'], ['command', '/cmd/flux_why.html']]) {
    await page.goto(origin + address)
    await page.evaluate(() => document.fonts.ready)
    const overflow = await page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth)
    if (overflow > 0) problems.push(`${address} is ${overflow} pixels wider than ${width}`)
    await page.screenshot({ path: path.join(pictures, `${name}-${width}.png`) })
  }
  await search(page, origin, 'suspend', '/guide/05-kustomizations.html', path.join(pictures, `search-${width}.png`))
  await page.context().close()
}

const server = await serve()
const origin = `http://127.0.0.1:${server.address().port}`
const browser = await chromium.launch({ executablePath: process.env.CHROMIUM, args: ['--no-sandbox'] })
try {
  fs.mkdirSync(pictures, { recursive: true })
  const { pages, links, missing } = await follow(await open(browser, origin, { width: 1280, height: 900 }), origin)
  const page = await open(browser, origin, { width: 1280, height: 900 })
  for (const file of missing) problems.push(`no link leads to ${file}`)
  for (const [words, want] of [['air-gapped', '/guide/17-air-gapped.html'], ['field manager', '/glossary.html'], ['flux bisect', 'bisect']]) {
    await search(page, origin, words, want)
  }
  for (const width of [1280, 390]) await shoot(browser, origin, width)
  console.log(`${links} links of ${pages} pages, screenshots in ${pictures}`)
} catch (err) {
  problems.push(err.message)
} finally {
  await browser.close()
  server.close()
}
for (const problem of new Set(problems)) console.error('✗ ' + problem)
process.exitCode = problems.length ? 1 : 0
