// The site as files: all links lead somewhere, and nothing is fetched from elsewhere.
import assert from "node:assert/strict";
import {spawnSync} from "node:child_process";
import {cpSync, existsSync, mkdtempSync, readFileSync, readdirSync, rmSync, statSync, writeFileSync} from "node:fs";
import {tmpdir} from "node:os";
import {dirname, join, relative, resolve} from "node:path";
import {test} from "node:test";

const {REDLINE_SITE: site, REDLINE_SOURCE: source} = process.env;
const all = readdirSync(site, {recursive: true}).filter((path) => statSync(join(site, path)).isFile());
const pages = new Map(all.filter((path) => path.endsWith(".html")).map((path) => [path, readFileSync(join(site, path), "utf8")]));
const attributes = (html, name) => [...html.matchAll(new RegExp(` ${name}="([^"]*)"`, "g"))].map((match) => match[1].replaceAll("&amp;", "&"));
const documents = readdirSync(join(source, "docs"), {recursive: true}).filter((path) => path.endsWith(".md"));

test("every document is in the navigation of every page", () => {
    assert.ok(documents.length > 35, "the folder was read");
    for (const [path, html] of pages) {
        const navigation = html.slice(html.indexOf('<nav id="pages"'));
        const targets = new Set(attributes(navigation, "href").map((href) => relative(site, resolve(site, dirname(path), href.split("#")[0]))));
        for (const document of documents) {
            if (document === "README.md") continue;
            const page = join("docs", document.replace(/(^|\/)README\.md$/, "$1index.md").replace(/\.md$/, ".html"));
            assert.ok(targets.has(page), `${path}: its navigation lacks ${page}`);
        }
    }
});

test("every link and anchor leads somewhere", () => {
    let links = 0, anchors = 0;
    for (const [path, html] of pages) {
        for (const href of [...attributes(html, "href"), ...attributes(html, "src")]) {
            if (/^[a-z]+:/.test(href)) continue;
            const [to, anchor] = href.split("#");
            const target = to === "" ? path : relative(site, resolve(site, dirname(path), to));
            assert.ok(existsSync(join(site, target)), `${path}: ${href}`);
            ++links;
            if (anchor === undefined) continue;
            assert.ok(pages.has(target) && attributes(pages.get(target), "id").includes(anchor), `${path}: ${href} has no such place`);
            ++anchors;
        }
    }
    assert.ok(links > 1000 && anchors > 100, `${links} links, ${anchors} anchors`);
});

test("an anchor is one place", () => {
    for (const [path, html] of pages) {
        const ids = attributes(html, "id");
        assert.equal(new Set(ids).size, ids.length, path);
    }
});

test("pages fetch nothing from elsewhere and run nothing", () => {
    for (const [path, html] of pages) {
        assert.doesNotMatch(html, /<script|<iframe|<object|<embed| on\w+=/i, path);
        for (const [tag] of html.matchAll(/<(?:link|img|source|video)\b[^>]*>/g)) assert.doesNotMatch(tag, /(?:href|src|srcset)="(?:[a-z]+:|\/)/i, path);
    }
    for (const path of all.filter((name) => /\.(css|svg)$/.test(name))) {
        const text = readFileSync(join(site, path), "utf8").replaceAll(/xmlns(:\w+)?="[^"]*"|<metadata>[^]*<\/metadata>|<!DOCTYPE[^>]*>/g, "");
        assert.doesNotMatch(text, /@import|url\(\s*["']?(?!#)|(?:href|src)="(?!#)|<script/i, path);
    }
});

test("a link or an anchor that leads nowhere ends the making of the site", () => {
    const folder = mkdtempSync(join(tmpdir(), "redline-site-"));
    try {
        for (const path of ["docs", "README.md", "actors/http/studio/src/favicon.svg"]) cpSync(join(source, path), join(folder, path), {recursive: true});
        writeFileSync(join(folder, "docs/README.md"), "# All\n\n## Start\n\n- [Broken](broken.md)\n");
        writeFileSync(join(folder, "docs/broken.md"), "# Broken\n\n[a](nothing.md) [b](#nowhere) [c](README.md#start)\n");
        const made = spawnSync("node", [join("tools", "build.mjs"), folder, join(folder, "out")], {encoding: "utf8"});
        assert.equal(made.status, 1);
        assert.deepEqual(made.stderr.trim().split("\n"), ["docs/broken.md: there is no nothing.md", "docs/broken.md: #nowhere has no such heading"]);
    } finally {
        rmSync(folder, {recursive: true, force: true});
    }
});
