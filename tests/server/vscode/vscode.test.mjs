// `redline lsp` in VS Code, with the extension of docs/editors/vscode.md: an edit with an instruction, and a completion while typing.
// VS Code is code-server's, in Debian's Chromium. The first run builds its native parts with g++, python3 and the headers of Node.js.
import assert from "node:assert/strict";
import {spawn, spawnSync} from "node:child_process";
import {existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync} from "node:fs";
import {tmpdir} from "node:os";
import {dirname, join, resolve} from "node:path";
import {after, before, test} from "node:test";
import {chromium} from "playwright-core";
import {Server, draftModel, exampleConfig, program} from "./redline.mjs";

const page = readFileSync(join(dirname(exampleConfig), "../docs/editors/vscode.md"), "utf8");
const block = (language) => page.match(new RegExp("```" + language + "\\n([^]*?)```"))[1];
const packed = resolve("node_modules/code-server");

function npm(folder, ...args) {
    const done = spawnSync("npm", [...args, "--no-audit", "--no-fund", "--loglevel=error"], {cwd: folder, encoding: "utf8"});
    return done.status === 0 ? "" : `npm ${args.join(" ")}: ${done.stderr}`;
}

/** Runs once what `npm ci --ignore-scripts` leaves out of code-server. */
function finishInstallation() {
    const stamp = join(packed, "finished");
    if (existsSync(stamp)) return;
    const parts = join(packed, "lib/vscode");
    assert.equal(npm(parts, "install", "--omit=dev", "--ignore-scripts"), "");
    // Whether a part that cannot be built is needed shows when the editor starts.
    const complaints = ["@vscode/spdlog", "native-watchdog", "node-pty", "kerberos", "@parcel/watcher"].map((name) => npm(parts, "rebuild", name));
    complaints.push(npm(".", "rebuild", "argon2"));
    console.log(complaints.filter(Boolean).join("\n"));
    writeFileSync(stamp, "");
}

let server, editor, browser, folder, address;
before(async () => {
    finishInstallation();
    server = await Server.start("--draft", draftModel);
    folder = mkdtempSync(join(tmpdir(), "redline-vscode-"));
    for (const name of ["user/User", "extensions/redline", "project"]) mkdirSync(join(folder, name), {recursive: true});
    writeFileSync(join(folder, "project/limit.py"), "LIMIT = 10\n");
    writeFileSync(join(folder, "extensions/redline/package.json"), block("json"));
    writeFileSync(join(folder, "extensions/redline/extension.js"), block("js"));
    assert.equal(npm(join(folder, "extensions/redline"), "install", "--ignore-scripts"), "");
    writeFileSync(join(folder, "user/User/settings.json"), JSON.stringify(
        {"redline.command": resolve(program), "redline.server": server.url, "workbench.startupEditor": "none", "security.workspace.trust.enabled": false}));
    editor = spawn(process.execPath, [join(packed, "out/node/entry.js"), "--auth", "none", "--bind-addr", "127.0.0.1:0", "--user-data-dir", join(folder, "user"),
        "--extensions-dir", join(folder, "extensions"), "--disable-telemetry", "--disable-update-check", join(folder, "project")],
    {stdio: ["ignore", "pipe", "pipe"], env: {...process.env, HOME: folder, XDG_CONFIG_HOME: folder, XDG_DATA_HOME: folder}});
    let said = "";
    address = await new Promise((done, failed) => {
        editor.on("exit", (code) => failed(new Error(`code-server ended with ${code}: ${said}`)));
        for (const stream of [editor.stdout, editor.stderr]) {
            stream.setEncoding("utf8").on("data", (text) => {
                said += text;
                const found = /listening on http:\/\/(127\.0\.0\.1:\d+)/.exec(said);
                if (found) done(found[1]);
            });
        }
    });
    browser = await chromium.launch({executablePath: "/usr/bin/chromium", args: ["--no-sandbox", "--disable-dev-shm-usage", "--disable-gpu"]});
});
after(async () => {
    await browser?.close();
    editor?.removeAllListeners("exit");
    editor?.kill();
    await server?.kill();
    if (folder) rmSync(folder, {recursive: true, force: true, maxRetries: 5});
});

test("edits with an instruction and completes as one types", {timeout: 180_000}, async () => {
    const view = await browser.newPage({viewport: {width: 1200, height: 800}});
    const payload = JSON.stringify([["openFile", `vscode-remote://${address}${folder}/project/limit.py`]]);
    await view.goto(`http://${address}/?folder=${folder}/project&payload=${encodeURIComponent(payload)}`);
    const lines = () => view.locator(".monaco-editor .view-line").allInnerTexts().then((all) => all.map((line) => line.replaceAll("\u00a0", " ")));
    await view.waitForSelector(".monaco-editor .view-line", {timeout: 60_000});
    await server.until(async () => await server.metric("redline_live_sessions") === 1, 60);

    await view.click(".monaco-editor .view-line");
    await view.keyboard.press("Control+.");
    await view.getByText("Edit with instruction").waitFor();
    assert.equal(await view.getByText("Edit: Add type hints.").count(), 1);
    await view.keyboard.press("Enter");
    await view.locator(".quick-input-widget input").waitFor();
    await view.keyboard.type("Change the number 10 to 64.");
    await view.keyboard.press("Enter");
    await server.until(async () => (await lines())[0] === "LIMIT = 64", 30);

    await view.keyboard.press("Control+End");
    await view.keyboard.type("def double(x):");
    await view.keyboard.press("Enter");
    await view.locator(".ghost-text-decoration, .ghost-text").first().waitFor({timeout: 30_000});
    await view.screenshot({path: "vscode.png"});
    await view.keyboard.press("Tab");
    await view.keyboard.press("Control+s");
    const taken = /^LIMIT = 64\ndef double\(x\):\n +\S/;
    await server.until(() => taken.test(readFileSync(join(folder, "project/limit.py"), "utf8")), 10);
});
