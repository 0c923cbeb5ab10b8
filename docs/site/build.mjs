// Renders the documents as a site of plain files, without scripts: it works from a folder and asks nothing of any network.
// Usage: node build.mjs REPOSITORY OUT. The navigation is docs/README.md's lists; what they and their pages link is rendered, too.
// Ends with 1 and a list when a link or an anchor leads nowhere.
import MarkdownIt from "markdown-it";
import {copyFileSync, existsSync, mkdirSync, readFileSync, rmSync, statSync, writeFileSync} from "node:fs";
import {dirname, extname, join, posix} from "node:path";

const [root, out] = process.argv.slice(2);
const index = "docs/README.md";
const asTheyAre = new Set([".json", ".png", ".svg"]);
const problems = [];

const escape = (text) => text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;").replaceAll('"', "&quot;");
const isExternal = (href) => /^[a-z][a-z0-9+.-]*:/i.test(href);

/** As GitHub makes them, so that anchors are the same in the files and on the site. */
function slugger() {
    const seen = new Map();
    return (text) => {
        const slug = text.trim().toLowerCase().replace(/[^\p{L}\p{M}\p{N}_\- ]/gu, "").replaceAll(" ", "-");
        const count = seen.get(slug) ?? 0;
        seen.set(slug, count + 1);
        return count === 0 ? slug : `${slug}-${count}`;
    };
}

/** Where a file of the repository lies on the site. */
function outputOf(path) {
    if (asTheyAre.has(extname(path))) return path;
    if (!path.endsWith(".md")) return `${path}.html`;
    const folder = dirname(path);
    if (posix.basename(path) === "README.md") return folder === "." ? "index.html" : `${folder}/index.html`;
    return path.replace(/\.md$/, ".html");
}

const relative = (from, to) => posix.relative(dirname(outputOf(from)), outputOf(to)) || posix.basename(outputOf(to));

const markdown = new MarkdownIt({html: false, linkify: false, typographer: false});
const rules = markdown.renderer.rules;
// Wide things scroll by themselves, by the keyboard as well.
rules.table_open = () => '<div class="table" tabindex="0"><table>\n';
rules.table_close = () => "</table></div>\n";
rules.fence = rules.code_block = (tokens, i) => `<pre tabindex="0"><code>${escape(tokens[i].content)}</code></pre>\n`;

// A flag or a path is not broken at its hyphens, if it fits into a narrow window.
const narrow = 32;
rules.code_inline = (tokens, i) => `<code${tokens[i].content.length <= narrow ? ' class="whole"' : ""}>${escape(tokens[i].content)}</code>`;

/** What a page is made of: its title, its headings and its links, which become the site's. */
function read(path) {
    const page = {path, headings: [], links: []};
    const slug = slugger();
    page.tokens = markdown.parse(readFileSync(join(root, path), "utf8"), {});
    /** Makes an attribute with a link the site's; `meta.target` is where it leads to in the repository. */
    const follow = (token, attribute) => {
        const href = token.attrGet(attribute);
        if (isExternal(href)) return;
        const [to, anchor] = href.split("#");
        let target = to === "" ? path : posix.normalize(posix.join(dirname(path), decodeURIComponent(to)));
        if (existsSync(join(root, target)) && statSync(join(root, target)).isDirectory()) target = posix.join(target, "README.md");
        if (target.startsWith("..") || !existsSync(join(root, target))) {
            problems.push(`${path}: there is no ${href}`);
            return;
        }
        page.links.push({target, anchor, href});
        token.meta = {target};
        token.attrSet(attribute, `${to === "" ? "" : relative(path, target)}${anchor === undefined ? "" : `#${anchor}`}`);
    };
    page.tokens.forEach((token, i) => {
        if (token.type === "heading_open") {
            const text = page.tokens[i + 1].children.filter((child) => child.type === "text" || child.type === "code_inline")
                .map((child) => child.content).join("");
            const id = slug(text);
            token.attrSet("id", id);
            page.headings.push({level: Number(token.tag[1]), id, text});
        }
        for (const child of token.children ?? []) {
            if (child.type === "link_open") follow(child, "href");
            if (child.type !== "image") continue;
            follow(child, "src");
            // A drawing has its own words, so it does not shrink with the window; what is too wide scrolls.
            const drawn = child.attrGet("src").endsWith(".svg");
            child.attrSet("class", drawn ? "drawing" : "picture");
            if (drawn) page.tokens[i - 1].attrs = [["class", "drawn"], ["tabindex", "0"]];
        }
    });
    page.title = page.headings.find((heading) => heading.level === 1)?.text ?? path;
    return page;
}

/** docs/README.md's lists, by the headings over them. */
function readNavigation(page) {
    const groups = [];
    page.tokens.forEach((token, i) => {
        if (token.type === "heading_open" && token.tag === "h2") groups.push({title: page.tokens[i + 1].content, entries: []});
        if (token.type !== "inline" || page.tokens[i - 2]?.type !== "list_item_open") return;
        const open = token.children.findIndex((child) => child.type === "link_open");
        if (open === -1 || token.children[open].meta === null) return;
        groups.at(-1).entries.push({target: token.children[open].meta.target, text: token.children[open + 1].content});
    });
    return groups;
}

const pages = new Map();
const files = new Set();
const queue = [index];
while (queue.length > 0) {
    const path = queue.shift();
    if (pages.has(path) || files.has(path)) continue;
    if (!path.endsWith(".md")) {
        files.add(path);
        continue;
    }
    const page = read(path);
    pages.set(path, page);
    queue.push(...page.links.map(({target}) => target));
}
for (const {path, links} of pages.values()) {
    for (const {target, anchor, href} of links) {
        if (anchor === undefined || !pages.has(target)) continue;
        if (!pages.get(target).headings.some(({id}) => id === anchor)) problems.push(`${path}: ${href} has no such heading`);
    }
}

const navigation = readNavigation(pages.get(index));
const order = navigation.flatMap(({entries}) => entries);

function navigationOf(path) {
    const entry = ({target, text}) => {
        const here = target === path;
        const parts = here ? pages.get(path).headings.filter(({level}) => level === 2) : [];
        const inside = parts.length < 2 ? "" : `<ul>${parts.map(({id, text: part}) => `<li><a href="#${id}">${escape(part)}</a></li>`).join("")}</ul>`;
        return `<li><a href="${relative(path, target)}"${here ? ' aria-current="page"' : ""}>${escape(text)}</a>${inside}</li>`;
    };
    return navigation.map(({title, entries}) => {
        const open = path === index || entries.some(({target}) => target === path);
        return `<details${open ? " open" : ""}><summary>${escape(title)}</summary><ul>${entries.map(entry).join("\n")}</ul></details>`;
    }).join("\n");
}

function neighboursOf(path) {
    const at = order.findIndex(({target}) => target === path);
    if (at === -1) return "";
    const link = (one, kind, word) => one === undefined ? "" :
        `<a rel="${kind}" href="${relative(path, one.target)}"><small>${word}</small>${escape(one.text)}</a>`;
    return `<nav class="neighbours" aria-label="Neighbours">${link(order[at - 1], "prev", "Before")}${link(order[at + 1], "next", "Next")}</nav>`;
}

function write(path, title, body) {
    const to = outputOf(path);
    const up = posix.relative(dirname(to), ".") || ".";
    mkdirSync(join(out, dirname(to)), {recursive: true});
    writeFileSync(join(out, to), `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>${escape(title)}${title === "Redline" ? "" : " - Redline"}</title>
<link rel="stylesheet" href="${up}/style.css">
<link rel="icon" href="${up}/favicon.svg">
</head>
<body>
<header><a class="name" href="${up}/index.html">Redline</a><a href="${relative(path, index)}">Documentation</a><a class="to-pages" href="#pages">Pages</a></header>
<div class="columns">
<main>
${body}
${neighboursOf(path)}
</main>
<nav id="pages" aria-label="Pages">
${navigationOf(path)}
</nav>
</div>
</body>
</html>
`);
}

if (problems.length > 0) {
    console.error(problems.join("\n"));
    process.exit(1);
}
rmSync(out, {recursive: true, force: true});
for (const {path, title, tokens} of pages.values()) write(path, title, markdown.renderer.render(tokens, markdown.options, {}));
for (const path of files) {
    if (asTheyAre.has(extname(path))) {
        mkdirSync(join(out, dirname(path)), {recursive: true});
        copyFileSync(join(root, path), join(out, path));
    } else {
        write(path, path, `<h1>${escape(path)}</h1>\n<pre tabindex="0"><code>${escape(readFileSync(join(root, path), "utf8"))}</code></pre>`);
    }
}
copyFileSync(join(root, "docs/site/style.css"), join(out, "style.css"));
copyFileSync(join(root, "actors/http/studio/src/favicon.svg"), join(out, "favicon.svg"));
console.log(`${pages.size} pages, ${files.size} files: ${join(out, "docs/index.html")}`);
