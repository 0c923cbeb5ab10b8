// The page at / in a real browser. This needs Debian's package chromium, without which the tests are skipped.
// Screenshots are left in the build folder.
import assert from "node:assert/strict";
import {existsSync, mkdtempSync, readFileSync, writeFileSync} from "node:fs";
import {createRequire} from "node:module";
import {tmpdir} from "node:os";
import {join} from "node:path";
import {after, before, test} from "node:test";
import {chromium} from "playwright-core";
import {Server, draftModel} from "./redline.mjs";

const browserPath = "/usr/bin/chromium";
const absent = !existsSync(browserPath) && "no chromium here";
const axe = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");

let browser, server;
before(async () => {
    if (absent) return;
    server = await Server.start("--draft", draftModel);
    browser = await chromium.launch({executablePath: browserPath, args: ["--no-sandbox", "--disable-dev-shm-usage", "--disable-gpu", "--disable-quic",
        "--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-sync"]});
});
after(async () => {
    await browser?.close();
    await server?.kill();
});

/** Opens a page and records the browser's errors, including blocked scripts, which fail the test that asks for them. */
async function open(url = server.url, options = {}) {
    const page = await browser.newPage({viewport: {width: 1400, height: 1000}, ...options});
    page.complaints = [];
    page.on("console", (m) => { if (m.type() === "error") page.complaints.push(m.text()); });
    page.on("pageerror", (e) => page.complaints.push(e.message));
    page.on("dialog", (d) => { page.complaints.push(`dialog: ${d.message()}`); void d.dismiss(); });
    await page.goto(url);
    await page.waitForSelector("#edit-run", {state: "attached"});
    return page;
}

/** The text of an editor, of which CodeMirror renders only the visible part. */
const editorText = (page, label) => page.locator(`[aria-label="${label}"]`).evaluate((content) =>
    content.cmTile?.view?.state.doc.toString() ?? content.cmView?.view?.state.doc.toString() ?? content.innerText);

/** Records the events of the page's answers, by method. */
function record(page) {
    const streams = [];
    page.on("response", async (response) => {
        if (!response.url().endsWith("/edit")) return;
        const method = response.request().postDataJSON().redline.speculation.method;
        streams.push(response.text().then((text) => ({method, events: text.split("\n\n").map((e) => e.split("\n").find((l) => l.startsWith("data: {")))
            .filter((l) => l !== undefined).map((l) => JSON.parse(l.slice(6)))})));
    });
    return streams;
}

async function runEdit(page) {
    await page.click("#edit-run");
    await page.waitForFunction(() => !document.querySelector("#edit-take").disabled, null, {timeout: 60_000});
    return page.locator(".edit-tab .status").innerText();
}

const write = (prompt) => fetch(`${server.url}/v1/completions`, {method: "POST", headers: {"Content-Type": "application/json"},
    body: JSON.stringify({prompt, max_tokens: 60, temperature: 0, ignore_eos: true})});

test("an edit streams in, coloured by source, and a race gives the same bytes", {skip: absent}, async () => {
    const page = await open();
    const streams = record(page);
    const said = await runEdit(page);
    assert.match(said, /lines? changed\..*passes\..*with the same bytes\.$/);
    const before = await editorText(page, "The file to edit");
    const after = await editorText(page, "The new file");
    assert.equal(after, before.replace(/\bname\b/g, "key"));
    assert.equal(await page.locator(".race-lane").count(), 2);

    const answers = await Promise.all(streams);
    assert.deepEqual(answers.map((a) => a.method).sort(), ["auto", "regular"]);
    for (const {method, events} of answers) {
        const trace = events.flatMap((e) => e.redline?.trace ?? []);
        const usage = events.find((e) => e.usage)?.usage;
        const text = events.map((e) => e.choices[0]?.delta?.content ?? "").join("");
        const came = trace.flatMap((t) => t.text);
        const sum = (list, i) => list.reduce((n, one) => n + one[i], 0);
        assert.equal(sum(came, 2), Buffer.byteLength(text), `${method}: bytes of the trace`);
        for (const [source, counts] of Object.entries(usage.redline.sources)) {
            assert.equal(sum(came.filter(([from]) => from === source), 1), counts.accepted, `${method}: ${source}`);
        }
        assert.equal(trace.reduce((n, t) => n + t.passes, 0), usage.redline.target_passes);
    }
    const auto = answers.find((a) => a.method === "auto");
    const drafted = auto.events.flatMap((e) => e.redline?.trace ?? []).flatMap((t) => t.text).filter(([from]) => from !== "model");
    assert.ok(drafted.length > 0, "a rename has tokens that a draft brought");
    // For a long text the page contains only the lines in view.
    const shown = await Promise.all([...new Set(drafted.map(([from]) => from))].map((from) => page.locator(`.from-${from}`).count()));
    assert.ok(Math.max(...shown) > 0, "and the page shows them");
    assert.deepEqual(page.complaints, []);
    await page.close();
});

test("Run can be clicked in windows of all widths", {skip: absent}, async () => {
    for (const width of [360, 600, 800, 1280]) {
        const page = await open(server.url, {viewport: {width, height: 700}});
        for (const id of ["#edit-instruction", "#edit-example", "#edit-method"]) await page.click(id, {trial: true, timeout: 20_000});
        await page.click("#edit-run", {timeout: 20_000});
        await page.waitForFunction(() => !document.querySelector("#edit-take").disabled, null, {timeout: 60_000});
        for (const tab of ["edit", "live", "server"]) {
            await page.click(`#tab-${tab}`, {timeout: 20_000});
            if (tab === "live") await page.click("#live-open", {trial: true, timeout: 20_000});
            const [needed, given] = await page.evaluate(() => {
                const all = [document.scrollingElement, ...document.querySelectorAll(".tab-body")].filter((e) => e.clientWidth > 0);
                return [Math.max(...all.map((e) => e.scrollWidth - e.clientWidth)), innerWidth];
            });
            assert.ok(needed <= 0, `${tab} at ${given} pixels scrolls sideways by ${needed}`);
        }
        assert.deepEqual(page.complaints, []);
        await page.close();
    }
});

test("each example does with the sample what it says", {skip: absent}, async () => {
    const page = await open();
    await page.uncheck("#edit-race");
    const sample = await editorText(page, "The file to edit");
    const meant = [
        (text) => text.replace(/\bname\b/g, "key"),
        (text) => text.replace("LIMIT = 10", "LIMIT = 25"),
        (text) => text.replace("ValueError", "TypeError"),
        (text) => text.replace("class Inventory", "class Store"),
        (text) => text.replaceAll(" < ", " <= "),
        (text) => text.replace("count=1", "count=2"),
    ];
    const offered = await page.locator("#edit-example option").allInnerTexts();
    assert.equal(offered.length, 1 + meant.length);
    for (const [i, change] of meant.entries()) {
        await page.selectOption("#edit-example", {index: i + 1});
        assert.equal(await page.inputValue("#edit-instruction"), offered[i + 1]);
        const said = await runEdit(page);
        assert.match(said, /^[1-9]\d* lines? changed\./, offered[i + 1]);
        assert.equal(await editorText(page, "The new file"), change(sample), offered[i + 1]);
    }
    assert.deepEqual(page.complaints, []);
    await page.close();
});

test("an instruction that the demonstration model does not know is met with those it does", {skip: absent}, async () => {
    const page = await open();
    await page.uncheck("#edit-race");
    await page.fill("#edit-instruction", "Please leave everything as it is, thank you.");
    const said = await runEdit(page);
    assert.match(said, /^0 lines changed\./);
    assert.match(said, /knows few phrases; try one like:\s+Rename `old` to `new`\./);
    assert.deepEqual(page.complaints, []);
    await page.close();
});

test("what a file says is never markup", {skip: absent}, async () => {
    const page = await open();
    const folder = mkdtempSync(join(tmpdir(), "redline-studio-"));
    writeFileSync(join(folder, "a.py"), 'X = 10\nY = "<img src=x onerror=alert(1)><script>alert(2)</script>"\n');
    await page.setInputFiles("#edit-open", join(folder, "a.py"));
    await page.waitForFunction(() => document.querySelector("#edit-path").value === "a.py");
    await page.fill("#edit-instruction", "Change the number 10 to 64. <img src=y onerror=alert(3)>");
    await page.uncheck("#edit-race");
    await runEdit(page);
    assert.equal(await page.locator("img").count(), 0);
    assert.deepEqual(page.complaints, []);
    await page.close();
});

test("what a model says is never markup", {skip: absent}, async () => {
    const folder = mkdtempSync(join(tmpdir(), "redline-studio-"));
    const said = '<img src=x onerror=alert(1)><script>alert(2)</script><b onmouseover=alert(3)>';
    writeFileSync(join(folder, "says.json"), JSON.stringify([{when: ["Say something"], say: "```python\n" + said + "\n```"}]));
    const talking = await Server.start("--script", join(folder, "says.json"));
    try {
        const page = await open(talking.url);
        await page.fill("#edit-instruction", "Say something.");
        await page.uncheck("#edit-race");
        await runEdit(page);
        assert.match(await editorText(page, "The new file"), /<img src=x onerror=alert\(1\)>/, "it is there, as text");
        await page.route("**/complete", async (route) => {
            const response = await route.fetch();
            const answer = await response.json();
            answer.choices[0].text = said;
            await route.fulfill({response, json: answer});
        });
        await page.click("#tab-live");
        await page.click("#live-open");
        await page.waitForSelector(".is-ghost", {timeout: 30_000});
        assert.match(await page.locator(".is-ghost").first().innerText(), /<img src=x/);
        await page.keyboard.press("Tab");
        assert.equal(await page.locator("img, b, main script").count(), 0);
        assert.deepEqual(page.complaints, []);
        await page.close();
    } finally {
        await talking.kill();
    }
});

test("files that are no text, and servers that are gone, are told", {skip: absent}, async () => {
    const page = await open();
    const folder = mkdtempSync(join(tmpdir(), "redline-studio-"));
    writeFileSync(join(folder, "a.bin"), Buffer.from([0xff, 0xfe, 0x00, 0x80]));
    await page.setInputFiles("#edit-open", join(folder, "a.bin"));
    await page.waitForSelector(".notice:not([hidden])");
    assert.match(await page.locator(".notice").innerText(), /a\.bin is not UTF-8 text/);
    await page.route("**/v1/redline/sessions", (route) => route.abort());
    await page.click("#edit-run");
    await page.waitForFunction(() => document.querySelector(".notice").textContent.includes("does not answer"));
    assert.match(await page.locator(".edit-tab .status").innerText(), /failed/);
    await page.close();
});

test("a key is asked for, and a wrong one is told", {skip: absent}, async () => {
    const folder = mkdtempSync(join(tmpdir(), "redline-studio-"));
    writeFileSync(join(folder, "keys"), "somebody:a-key-of-enough-letters-to-be-taken-0123456789\n", {mode: 0o600});
    const guarded = await Server.start("--api-key-file", join(folder, "keys"));
    try {
        const page = await open(guarded.url);
        await page.waitForSelector("dialog[open]");
        assert.match(await page.locator("dialog").innerText(), /asks for an API key/);
        await page.fill("#key", "wrong");
        await page.click("dialog button.primary");
        await page.waitForFunction(() => document.querySelector("dialog[open]")?.textContent.includes("does not accept this key"));
        await page.fill("#key", "a-key-of-enough-letters-to-be-taken-0123456789");
        await page.click("dialog button.primary");
        await page.waitForFunction(() => document.querySelector(".top .model").textContent.includes("tokens"));
        assert.ok(!JSON.stringify(await page.evaluate(() => ({...localStorage}))).includes("a-key"), "the key is of the tab alone");
        await page.close();
    } finally {
        await guarded.kill();
    }
});

test("a live session shows its KV, and a completion at the cursor", {skip: absent}, async () => {
    const page = await open(`${server.url}/#live`);
    await page.click("#live-open");
    await page.waitForSelector(".is-ghost", {timeout: 30_000});
    const before = await editorText(page, "The file of the edit session");
    await page.keyboard.press("Tab");
    const after = await editorText(page, "The file of the edit session");
    assert.ok(after.length > before.length && after.startsWith(before), "Tab takes the completion");
    await page.keyboard.press("Control+Home");
    await page.keyboard.insertText("# one\n");
    await page.waitForFunction(() => [...document.querySelectorAll(".log li")].some((li) => li.textContent.startsWith("PATCH: 1 edit")));
    assert.match(await page.locator(".kv-bar").getAttribute("aria-label"), /KV of the prompt: \d+ exact, \d+ moved, \d+ stale tokens/);
    await page.waitForFunction(() => [...document.querySelectorAll(".log li")][0].textContent.startsWith("complete"), null, {timeout: 30_000});
    await page.click("#live-open");
    assert.deepEqual(page.complaints, []);
    await page.close();
});

test("the server is seen at work", {skip: absent}, async () => {
    const page = await open(`${server.url}/#server`);
    await page.waitForSelector(".cards dd");
    await fillView.server(page);
    assert.deepEqual(page.complaints, []);
    await page.close();
});

/** Actions that make each view show something. */
const fillView = {
    edit: async (page) => void await runEdit(page),
    live: async (page) => {
        await page.click("#live-open");
        await page.waitForSelector(".is-ghost", {timeout: 30_000});
    },
    server: async (page) => {
        await Promise.all([1, 2, 3, 4].map((n) => write(`def area_${n}(width, height):\n`)));
        await page.waitForFunction(() => Number(document.querySelectorAll(".server-tab tbody td")[5]?.textContent.replaceAll(",", "")) > 50, null, {timeout: 20_000});
    },
};

test("tools for accessibility find nothing serious, in light and in dark", {skip: absent}, async () => {
    for (const colorScheme of ["light", "dark"]) {
        const page = await open(server.url, {bypassCSP: true, colorScheme, viewport: {width: 1280, height: 900}});
        await page.addScriptTag({content: axe});
        for (const tab of ["edit", "live", "server"]) {
            await page.click(`#tab-${tab}`);
            await fillView[tab](page);
            await page.waitForTimeout(600);
            await page.screenshot({path: `studio-${tab}-${colorScheme}.png`});
            const {violations} = await page.evaluate(() => globalThis.axe.run());
            const serious = violations.filter((v) => v.impact === "serious" || v.impact === "critical");
            assert.deepEqual(serious.map((v) => `${colorScheme} ${tab}: ${v.id}: ${v.nodes[0].html}`), []);
        }
        await page.close();
    }
});

// Which colors a page shows on which background depends on the model, so all combinations are checked.
test("code can be read in every colour, on every background", {skip: absent}, async () => {
    const page = await open(server.url);
    const worst = await page.evaluate(() => {
        const bytes = (colour) => {
            const context = Object.assign(document.createElement("canvas"), {width: 1, height: 1}).getContext("2d");
            context.fillStyle = colour;
            context.fillRect(0, 0, 1, 1);
            return [...context.getImageData(0, 0, 1, 1).data];
        };
        const hex = (colour) => [1, 3, 5, 7].map((i) => (colour.length > i ? parseInt(colour.slice(i, i + 2), 16) : 255));
        const over = (below, colour) => below.map((b, i) => b + (hex(colour)[i] - b) * hex(colour)[3] / 255);
        const light = (colour) => colour.map((c) => c / 255).map((c) => (c <= 0.03928 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4))
            .reduce((sum, c, i) => sum + c * [0.2126, 0.7152, 0.0722][i], 0);
        const contrast = (a, b) => (Math.max(light(a), light(b)) + 0.05) / (Math.min(light(a), light(b)) + 0.05);
        const found = [];
        for (const theme of ["light", "dark"]) {
            document.documentElement.dataset.theme = theme;
            const style = getComputedStyle(document.documentElement);
            const all = (prefix) => ["model", "lookup", "prediction", "draft", "program", "copy", "grammar",
                "keyword", "string", "number", "comment", "name"].map((n) => `--${prefix}-${n}`).filter((n) => style.getPropertyValue(n) !== "");
            const value = (name) => style.getPropertyValue(name).trim();
            const sheet = bytes(value("--sheet")).slice(0, 3);
            const sheets = [sheet, over(sheet, value("--line-active"))];
            for (const text of [...all("code"), "--text"]) {
                for (const wash of all("wash")) {
                    for (const below of sheets) {
                        const c = contrast(hex(value(text)).slice(0, 3), over(below, value(wash)));
                        if (c < 4.5) found.push(`${theme}: ${text} on ${wash}: ${c.toFixed(2)}`);
                    }
                }
            }
        }
        return found;
    });
    assert.deepEqual(worst, []);
    await page.close();
});

test("the page is small, compressed, cached, and under a strict policy", {skip: absent}, async () => {
    const page = await fetch(server.url);
    assert.match(page.headers.get("content-type"), /^text\/html/);
    const policy = page.headers.get("content-security-policy");
    assert.match(policy, /default-src 'none'/);
    assert.ok(!policy.includes("unsafe"), policy);
    const script = await fetch(`${server.url}/studio/studio.js`);
    assert.equal(script.headers.get("content-encoding"), "gzip");
    assert.ok((await script.arrayBuffer()).byteLength < 400_000);
    const again = await fetch(`${server.url}/studio/studio.js`, {headers: {"If-None-Match": script.headers.get("etag")}});
    assert.equal(again.status, 304);
    assert.equal((await fetch(`${server.url}/studio/../serve.cpp`)).status, 404);
    assert.equal((await fetch(`${server.url}/studio/nothing.js`)).status, 404);
});

test("--no-ui serves the plain page", {skip: absent}, async () => {
    const plain = await Server.start("--no-ui");
    try {
        const text = await (await fetch(plain.url)).text();
        assert.ok(!text.includes("studio.js"));
        assert.match(text, /chat\/completions/);
        assert.equal((await fetch(`${plain.url}/studio/studio.js`)).status, 404);
    } finally {
        await plain.kill();
    }
});
