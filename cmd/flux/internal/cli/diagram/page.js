'use strict'
// The page is complete without this script, which adds zoom, dragging, folding and search. It only reads the text and
// the attributes of elements.

const view = document.querySelector('main')
const svg = view.querySelector('svg')
const size = svg.viewBox.baseVal
const input = document.querySelector('input')
const note = document.querySelector('output')
const unfoldAll = document.getElementById('unfold')
const nodes = new Map([...svg.querySelectorAll('.node')].map((g) => [g.id, { g, next: [], edges: [], above: 0, text: g.textContent.toLowerCase() }]))
const edges = [...svg.querySelectorAll('.edge')].map((path) => {
  const edge = { path, from: nodes.get(path.dataset.from), to: nodes.get(path.dataset.to) }
  edge.from.edges.push(edge)
  edge.to.edges.push(edge)
  if (edge.from !== edge.to) {
    edge.from.next.push(edge.to)
    edge.to.above++
  }
  return edge
})

// Zoom. The view scrolls, so that the wheel, scroll bars and touch screens need no code.

let scale = 1

// zoom keeps the point of the picture that is at a position of the view.
function zoom(to, x = view.clientWidth / 2, y = view.clientHeight / 2) {
  to = Math.min(Math.max(to, 0.02), 4)
  const left = (view.scrollLeft + x) * to / scale - x
  const top = (view.scrollTop + y) * to / scale - y
  scale = to
  svg.setAttribute('width', size.width * scale)
  svg.setAttribute('height', size.height * scale)
  view.scrollTo(left, top)
}

const whole = () => Math.min(view.clientWidth / size.width, view.clientHeight / size.height, 1)

function center(node) {
  const box = node.g.getBoundingClientRect()
  const frame = view.getBoundingClientRect()
  view.scrollBy(box.left - frame.left - (view.clientWidth - box.width) / 2, box.top - frame.top - (view.clientHeight - box.height) / 2)
}

// show makes a node visible and readable, and marks it.
function show(node) {
  for (const other of folded) {
    if (node !== other && reach([other], new Set()).has(node)) folded.delete(other)
  }
  update()
  if (scale < 0.6) zoom(1)
  center(node)
  svg.querySelector('.current')?.classList.remove('current')
  node.g.classList.add('current')
}

let drag = null
let dragged = false

svg.addEventListener('pointerdown', (event) => {
  dragged = false
  if (event.pointerType === 'mouse' && event.button === 0) drag = { x: event.clientX, y: event.clientY, left: view.scrollLeft, top: view.scrollTop }
})
addEventListener('pointermove', (event) => {
  if (!drag) return
  const x = event.clientX - drag.x
  const y = event.clientY - drag.y
  dragged ||= Math.hypot(x, y) > 4
  if (dragged) view.scrollTo(drag.left - x, drag.top - y)
})
addEventListener('pointerup', () => { drag = null })

view.addEventListener('wheel', (event) => {
  if (!event.ctrlKey) return // also the gesture of a trackpad
  event.preventDefault()
  const frame = view.getBoundingClientRect()
  zoom(scale * Math.exp(-event.deltaY / 300), event.clientX - frame.left, event.clientY - frame.top)
}, { passive: false })

// Folding. A folded node hides what can be reached from the roots only through it.

const folded = new Set()

// reach adds the nodes below others to a set, and does not pass through those in the set stop.
function reach(from, seen, stop = new Set()) {
  const queue = [...from]
  while (queue.length) {
    const node = queue.pop()
    if (seen.has(node)) continue
    seen.add(node)
    if (!stop.has(node)) queue.push(...node.next)
  }
  return seen
}

// The roots have no arrow to them. Cycles without a root begin at their first node.
const roots = [...nodes.values()].filter((node) => node.above === 0)
const reached = reach(roots, new Set())
for (const node of nodes.values()) {
  if (!reached.has(node)) {
    roots.push(node)
    reach([node], reached)
  }
}

function update() {
  const visible = reach(roots, new Set(), folded)
  for (const node of nodes.values()) {
    node.g.toggleAttribute('hidden', !visible.has(node))
    if (node.more) {
      node.g.setAttribute('aria-expanded', !folded.has(node))
      const below = folded.has(node) ? [...reach([node], new Set())].filter((other) => !visible.has(other)) : []
      node.more.textContent = below.length ? `+${below.length}` : ''
    }
  }
  for (const edge of edges) edge.path.toggleAttribute('hidden', !visible.has(edge.from) || !visible.has(edge.to))
  unfoldAll.disabled = folded.size === 0
  note.textContent = ''
}

function fold(node) {
  if (!folded.delete(node)) folded.add(node)
  update()
  if (folded.has(node) && !node.more.textContent) {
    folded.delete(node)
    note.textContent = 'nothing is only below it'
  }
}

for (const node of nodes.values()) {
  const near = (on) => () => node.edges.forEach((edge) => edge.path.classList.toggle('near', on))
  node.g.addEventListener('pointerenter', near(true))
  node.g.addEventListener('pointerleave', near(false))
  node.g.addEventListener('focus', near(true))
  node.g.addEventListener('blur', near(false))
  if (!node.next.length) continue
  node.more = node.g.appendChild(document.createElementNS(svg.namespaceURI, 'text'))
  node.more.setAttribute('class', 'more')
  node.more.setAttribute('x', node.g.querySelector('rect').width.baseVal.value - 8)
  node.more.setAttribute('y', 17)
  node.g.setAttribute('tabindex', 0)
  node.g.setAttribute('role', 'button')
  node.g.addEventListener('click', () => dragged || fold(node))
  node.g.addEventListener('keydown', (event) => {
    if (event.key !== 'Enter' && event.key !== ' ') return
    event.preventDefault()
    fold(node)
  })
}

// Search.

let hits = []
let hit = 0

function search() {
  const words = input.value.toLowerCase().split(/\s+/).filter(Boolean)
  hits = words.length ? [...nodes.values()].filter((node) => words.every((word) => node.text.includes(word))) : []
  svg.classList.toggle('searching', words.length > 0)
  for (const node of nodes.values()) node.g.classList.toggle('hit', hits.includes(node))
  move(0)
}

// move shows the match that is some steps from the first one.
function move(to) {
  hit = hits.length ? (to + hits.length) % hits.length : 0
  if (hits.length) show(hits[hit])
  note.textContent = hits.length ? `${hit + 1} of ${hits.length}` : input.value.trim() && 'no matches'
}

input.addEventListener('input', search)

// Buttons and keys.

const actions = {
  in: () => zoom(scale * 1.25),
  out: () => zoom(scale / 1.25),
  fit: () => zoom(whole()),
  unfold: () => { folded.clear(); update() },
}
for (const [id, action] of Object.entries(actions)) document.getElementById(id).addEventListener('click', action)

const keys = {
  '+': actions.in,
  '=': actions.in,
  '-': actions.out,
  0: actions.fit,
  '/': () => input.select(),
  Escape: () => { input.value = ''; search(); view.focus() },
  ArrowLeft: () => view.scrollBy(-80, 0),
  ArrowRight: () => view.scrollBy(80, 0),
  ArrowUp: () => view.scrollBy(0, -80),
  ArrowDown: () => view.scrollBy(0, 80),
}
addEventListener('keydown', (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey) return
  if (event.target === input && event.key !== 'Escape') {
    if (event.key === 'Enter') move(hit + (event.shiftKey ? -1 : 1))
    return
  }
  if (event.key.startsWith('Arrow') && event.target.closest?.('aside')) return // it scrolls
  const action = keys[event.key]
  if (!action) return
  event.preventDefault()
  action()
})

for (const link of document.querySelectorAll('aside a')) {
  link.addEventListener('click', (event) => {
    event.preventDefault()
    show(nodes.get(link.hash.slice(1)))
  })
}

// Begin with the first failure, or the first root, at a readable size.
document.body.classList.add('scripted')
for (const element of document.querySelectorAll('#tools, #help')) element.hidden = false
zoom(Math.max(whole(), 0.75))
const failure = document.querySelector('aside a')
const first = failure ? nodes.get(failure.hash.slice(1)) : roots[0]
if (first) center(first)
