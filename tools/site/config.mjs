// The configuration of VitePress: which documents are pages, their order, and how links between files of
// the repository become links of the site.
import fs from 'node:fs'
import path from 'node:path'
import { fileURLToPath } from 'node:url'

const root = path.dirname(path.dirname(fileURLToPath(import.meta.url)))
const repository = 'https://github.com/fluxkit/flux'

// The addresses of documents outside of docs.
const others = {
  'README.md': 'index.md',
  'CHANGELOG.md': 'changelog.md',
  'CONTRIBUTING.md': 'contributing.md',
  'SECURITY.md': 'vulnerabilities.md',
  'action/README.md': 'action.md',
  'sandbox/README.md': 'sandbox.md'
}

// address returns the path of the page of a document.
const address = (file) => others[file] ?? file.replace(/^docs\//, '').replace(/(^|\/)README\.md$/, '$1index.md')

// target returns what a link of a document refers to: a page, or a file of the repository.
function target(file, href) {
  if (/^([a-z]+:|#)/.test(href)) return href
  const [name, fragment] = href.split('#')
  const linked = path.posix.normalize(path.posix.join(path.posix.dirname(file), name))
  if (!linked.endsWith('.md') || !fs.existsSync(path.join(root, linked))) return `${repository}/blob/main/${linked}`
  return '/' + address(linked) + (fragment ? '#' + fragment : '')
}

// slugify returns the anchor of a heading as GitHub generates it, for which links are written.
const slugify = (heading) =>
  heading.trim().toLowerCase().replace(/[^\p{L}\p{M}\p{N}\p{Pc} -]/gu, '').replace(/ /g, '-')

// convert changes a parsed document for the site. Pages of commands begin with a heading of the second
// level. The attributes of code blocks are for the test that runs them. Vue does not evaluate {{ … }} in
// code.
function convert(state) {
  const file = path.relative(root, state.env.realPath ?? state.env.path).split(path.sep).join('/')
  const command = file.startsWith('docs/cmd/')
  for (const token of state.tokens) {
    if (token.type === 'fence') token.info = token.info.split(' ')[0]
    if (command && /^heading_/.test(token.type)) token.tag = 'h' + (token.tag[1] - 1)
    for (const child of token.children ?? []) {
      if (child.type === 'code_inline') child.attrSet('v-pre', '')
      if (child.type === 'link_open') child.attrSet('href', target(file, child.attrGet('href')))
    }
  }
}

// title returns the first heading of a document.
const title = (file) => fs.readFileSync(path.join(root, file), 'utf8').match(/^#+ (.*)$/m)[1].replaceAll('`', '')

const item = (file) => ({ text: title(file), link: '/' + address(file).replace(/(index)?\.md$/, '') })

// documents lists the documents of a directory.
const documents = (directory) =>
  fs.readdirSync(path.join(root, directory)).filter((name) => name.endsWith('.md')).sort().map((name) => `${directory}/${name}`)

const guide = [
  { text: 'Guide', items: documents('docs/guide').sort((a, b) => b.endsWith('README.md') - a.endsWith('README.md')).map(item) },
  { text: 'Reference', items: [...documents('docs'), 'action/README.md', 'sandbox/README.md'].map(item) },
  { text: 'Project', items: ['CHANGELOG.md', 'CONTRIBUTING.md', 'SECURITY.md'].map(item) }
]

// commands returns one entry for each verb, with its subcommands below it.
function commands() {
  const pages = documents('docs/cmd')
  const verbs = pages.filter((file) => path.basename(file, '.md').split('_').length === 2)
  return [item('docs/cmd/flux.md'), ...verbs.map((verb) => {
    const below = pages.filter((file) => file.startsWith(verb.replace(/\.md$/, '_')))
    return below.length ? { ...item(verb), collapsed: true, items: below.map(item) } : item(verb)
  })]
}

export default {
  title: 'flux',
  description: 'Bootstrap, inspect and operate Flux',
  base: process.env.SITE_BASE ?? '/',
  head: [['link', { rel: 'icon', href: 'data:,' }]],
  rewrites: address,
  markdown: {
    html: false,
    anchor: { slugify },
    // The outputs of commands are not highlighted.
    languages: [{ name: 'output', scopeName: 'source.output', patterns: [] }],
    config: (md) => {
      md.core.ruler.after('inline', 'repository', convert)
      // Vue removes a line break between two elements, also between words.
      md.renderer.rules.softbreak = () => ' '
    }
  },
  themeConfig: {
    nav: [
      { text: 'Guide', link: '/guide/', activeMatch: '^/guide/' },
      { text: 'Commands', link: '/cmd/flux', activeMatch: '^/cmd/' },
      { text: 'Changes', link: '/changelog' }
    ],
    sidebar: { '/cmd/': [{ text: 'Commands', items: commands() }], '/': guide },
    outline: [2, 3],
    search: {
      provider: 'local',
      // Pages that explain come before pages that list flags.
      options: { miniSearch: { searchOptions: { boostDocument: (id) => (id.includes('/cmd/') ? 0.5 : 1) } } }
    },
    socialLinks: [{ icon: 'github', link: repository }]
  }
}
