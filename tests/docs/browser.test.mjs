// The site in Chromium, from files: it requests nothing from a network, nothing is wider than the window, and contrast holds in both
// schemes. Needs Debian's package chromium; without it the tests are skipped. Screenshots are left in the build folder.
import assert from "node:assert/strict";
import {existsSync, readFileSync} from "node:fs";
import {createRequire} from "node:module";
import {join} from "node:path";
import {after, before, test} from "node:test";
import {pathToFileURL} from "node:url";
import {chromium} from "playwright-core";

const {REDLINE_SITE: site} = process.env;
const browserPath = "/usr/bin/chromium";
const skip = !existsSync(browserPath) && "no chromium here";
const axe = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");
const paths = ["index.html", "docs/index.html", "docs/start.html", "docs/concepts.html", "docs/api.html", "docs/pools.html", "docs/reference/options.html", "docs/reference/metrics.html",
    "docs/clients/index.html", "docs/editors/zed.html", "deploy/index.html", "bench/results/index.html"];

let browser;
before(async () => {
    if (skip) return;
    browser = await chromium.launch({executablePath: browserPath, args: ["--no-sandbox", "--disable-dev-shm-usage", "--disable-gpu", "--disable-quic", "--no-first-run",
        "--disable-background-networking", "--disable-component-update", "--disable-sync"]});
});
after(() => browser?.close());

for (const [colorScheme, width] of [["light", 1280], ["dark", 1280], ["light", 400], ["dark", 400]]) {
    test(`${colorScheme}, ${width} wide`, {skip}, async () => {
        const page = await browser.newPage({viewport: {width, height: 900}, colorScheme});
        const asked = [], complaints = [];
        page.on("request", (request) => asked.push(request.url()));
        page.on("console", (message) => { if (message.type() === "error") complaints.push(message.text()); });
        for (const path of paths) {
            await page.goto(pathToFileURL(join(site, path)).href);
            const seen = await page.evaluate(() => ({
                over: document.documentElement.scrollWidth - document.documentElement.clientWidth,
                broken: [...document.images].filter((image) => image.naturalWidth === 0).map((image) => image.src),
                styled: getComputedStyle(document.querySelector("main")).paddingLeft !== "0px",
            }));
            assert.deepEqual(seen, {over: 0, broken: [], styled: true}, path);
            await page.evaluate(axe);
            const {violations} = await page.evaluate(() => globalThis.axe.run({runOnly: ["wcag2a", "wcag2aa"], preload: false}));
            assert.deepEqual(violations.map(({id, nodes}) => `${id}: ${nodes[0].html}`), [], path);
            await page.screenshot({path: `${path.replaceAll("/", "-").replace(".html", "")}-${colorScheme}-${width}.png`});
        }
        assert.deepEqual(asked.filter((url) => !url.startsWith("file:")), []);
        assert.deepEqual(complaints, []);
        await page.close();
    });
}

test("drawings follow the scheme, and groups of the navigation open", {skip}, async () => {
    const colours = [];
    for (const colorScheme of ["light", "dark"]) {
        const page = await browser.newPage({viewport: {width: 1280, height: 900}, colorScheme});
        await page.goto(pathToFileURL(join(site, "docs/pictures/pool.svg")).href);
        colours.push(await page.evaluate(() => getComputedStyle(document.querySelector(".sheet")).fill));
        await page.goto(pathToFileURL(join(site, "docs/concepts.html")).href);
        assert.equal(await page.locator("#pages details[open]").count(), 1);
        await page.click("#pages summary:text('Guides')");
        await page.click("#pages a:text-is('Serve a team')");
        assert.match(page.url(), /docs\/team\.html$/);
        await page.close();
    }
    assert.notEqual(colours[0], colours[1]);
});
