// `redline edit` and other commands in edge cases: files that are not plain text with line feeds, answers that are cut,
// folders that lead elsewhere, text that a terminal would obey, unwritable output. A stand-in acts as the model.
import assert from "node:assert/strict";
import {spawn, spawnSync} from "node:child_process";
import {existsSync, linkSync, mkdirSync, mkdtempSync, readFileSync, rmSync, statSync, symlinkSync, writeFileSync, chmodSync, chownSync} from "node:fs";
import {createServer} from "node:http";
import {tmpdir} from "node:os";
import {join} from "node:path";
import {after, before, beforeEach, test} from "node:test";
import {program, targetModel} from "./redline.mjs";

let folder;
let server;
let url;
let said;  // the model's next answer, why it ends, its program, and the answers after it
let asked;  // the bodies of the requests

before(async () => {
    server = createServer((request, response) => {
        if (request.method === "GET") return response.writeHead(404).end();
        let body = "";
        request.on("data", (part) => { body += part; });
        request.on("end", () => {
            asked.push(JSON.parse(body));
            response.writeHead(200, {"Content-Type": "text/event-stream"});
            const event = (choice) => response.write(`data: ${JSON.stringify({choices: [{index: 0, ...choice}]})}\n\n`);
            const now = asked.length > 1 && said.then ? said.then : said;
            event({delta: {content: now.text}, finish_reason: null});
            event({delta: {}, finish_reason: now.finish ?? "stop", redline: now.redline});
            response.end("data: [DONE]\n\n");
        });
    });
    await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
    url = `http://127.0.0.1:${server.address().port}`;
});
after(() => server.close());
beforeEach((t) => {
    folder = mkdtempSync(join(tmpdir(), "redline-edit-"));
    asked = [];
    said = {text: ""};
    const made = folder;
    t.after?.(() => rmSync(made, {recursive: true, force: true}));
});

const at = (name) => join(folder, name);
const read = (name) => readFileSync(at(name));
function write(name, bytes) {
    mkdirSync(join(at(name), ".."), {recursive: true});
    writeFileSync(at(name), bytes);
}
const fenced = (text) => `\`\`\`python\n${text}\`\`\``;
/** Runs a command in the folder without blocking the stand-in. */
function run(command, ...args) {
    return new Promise((resolve) => {
        const child = spawn(command, args, {cwd: folder, stdio: ["ignore", "pipe", "pipe"]});
        const out = {out: "", err: ""};
        child.stdout.setEncoding("utf8").on("data", (text) => { out.out += text; });
        child.stderr.setEncoding("utf8").on("data", (text) => { out.err += text; });
        child.on("close", (code) => resolve({...out, code}));
    });
}
const edit = (...args) => run(program, "edit", "-i", "Change the number 10 to 64.", "--server", url, ...args);

test("a file keeps its byte order mark, its line ends and the end of its last line", async () => {
    const mark = "\ufeff";
    const table = [
        [`${mark}LIMIT = 10\r\nSIZE = 3\r\n`, "LIMIT = 64\nSIZE = 3\n", `${mark}LIMIT = 64\r\nSIZE = 3\r\n`],
        ["LIMIT = 10\r\nSIZE = 3", "LIMIT = 64\nSIZE = 3\n", "LIMIT = 64\r\nSIZE = 3"],
        ["LIMIT = 10\nSIZE = 3", "LIMIT = 64\nSIZE = 3\n", "LIMIT = 64\nSIZE = 3"],
        ["LIMIT = 10\r\nSIZE = 3\n", "LIMIT = 64\nSIZE = 3\n", "LIMIT = 64\r\nSIZE = 3\n"],
    ];
    for (const door of [["c.py", "--write"], ["c.py", "--yes"], [".", "--yes"]]) {
        for (const [old, answer, wanted] of table) {
            write("c.py", old);
            said = {text: fenced(answer)};
            const done = await edit(...door);
            assert.equal(done.code, 0, done.err);
            assert.equal(read("c.py").toString(), wanted, JSON.stringify([door, old]));
            const shown = asked.pop();
            assert.ok(!JSON.stringify(shown).includes("\\r") && !JSON.stringify(shown).includes(mark), "the model is shown neither");
        }
    }
});

test("an answer that was cut is not written, however whole it looks", async () => {
    const old = "# Title\n\nOne.\n\nTwo.\n\nThree.\n";
    for (const finish of ["length", "content_filter"]) {
        for (const door of [["README.md", "--write"], [".", "--yes"]]) {
            write("README.md", old);
            said = {text: "```\n# Title\n\nUsage:\n\n```\n", finish};
            const done = await edit(...door);
            assert.notEqual(done.code, 0);
            assert.match(done.err, /the model's answer was cut before its end/);
            assert.equal(read("README.md").toString(), old);
        }
    }
});

test("a program with a span that the model refused never becomes the file", async () => {
    const span = {file: 1, unit: "lines", first: 1, last: 1, trust: "verified", reason: "doubt", tokens: 4};
    const redline = (refused) => ({program: "<copy lines=\"1-1\"/></program>", spans: [{...span, refused}]});
    for (const [refused, wanted] of [[false, "LIMIT = 11\n"], [true, "LIMIT = 64\n"]]) {
        for (const finish of refused ? ["stop", "length"] : ["stop"]) {
            asked = [];
            write("c.py", "LIMIT = 10\n");
            said = {text: "LIMIT = 11\n", finish, redline: redline(refused), then: {text: fenced("LIMIT = 64\n")}};
            const done = await edit("c.py", "--method", "copy", "--copy-trust", "auto", "--write", "--json");
            assert.equal(done.code, 0, done.err);
            assert.equal(read("c.py").toString(), wanted);
            assert.equal(JSON.parse(done.out).stats.refused_spans, refused ? 1 : 0);
            assert.equal(asked.length, refused ? 2 : 1);
            assert.equal(asked[0].redline.copy.probability_min.toFixed(2), "0.05");
            if (refused) assert.deepEqual([asked[1].redline.copy, asked[1].prediction.content], [undefined, "LIMIT = 10\n"]);
        }
    }
});

test("what is no text in UTF-8 is edited by no door, and nobody advises it", async () => {
    const latin = Buffer.from("NAME = 'caf\xe9'\nLIMIT = 10\n", "latin1");
    const zero = Buffer.from("LIMIT = 10\n\0\n");
    for (const bytes of [latin, zero]) {
        write("latin.py", bytes);
        said = {text: fenced("LIMIT = 64\n")};
        for (const flags of [[], ["--write"], ["--yes"]]) {
            const done = await edit("latin.py", ...flags);
            assert.equal(done.code, 2);
            assert.match(done.err, /latin\.py cannot be edited: it is not text in UTF-8 \(byte \d+ is (E9|00)\)/);
            assert.doesNotMatch(done.err, /without --server/);
            assert.deepEqual(read("latin.py"), bytes);
        }
    }
    assert.equal(asked.length, 0);
    const local = await run(program, "edit", "latin.py", "-i", "x", "--model", targetModel, "--write");
    assert.equal(local.code, 2, local.err);
});

test("one file's difference is a patch that git applies", async () => {
    write("a.py", "LIMIT = 10\nSIZE = 3\n");
    said = {text: fenced("LIMIT = 64\nSIZE = 3\n")};
    const done = await edit("a.py");
    assert.equal(done.out, "--- a/a.py\n+++ b/a.py\n@@ -1,2 +1,2 @@\n-LIMIT = 10\n+LIMIT = 64\n SIZE = 3\n");
    write("fix.patch", done.out);
    assert.equal(spawnSync("git", ["apply", "fix.patch"], {cwd: folder}).status, 0);
    assert.equal(read("a.py").toString(), "LIMIT = 64\nSIZE = 3\n");
    const same = await edit("a.py");
    assert.deepEqual([same.out, same.code], ["", 0]);
    assert.match(same.err, /^no change$/m);
});

const hasScript = spawnSync("script", ["--version"]).status === 0;

test("a terminal gets nothing of the model's to obey", {skip: !hasScript}, async () => {
    const evil = "import os; os.system('evil')\x1b[1A\x1b[2K\r+A long text. \x9b2K \u202e\u2066";
    write("a.py", "LIMIT = 10\n");
    said = {text: fenced(`LIMIT = 10\n${evil}\n`)};
    const quoted = [program, "edit", "-i", "x", "--server", url, "a.py"].map((word) => `'${word}'`).join(" ");
    for (const more of ["", " --json", " --patch -"]) {
        const shown = (await run("script", "-qec", quoted + more, "/dev/null")).out.replaceAll(/\x1b\[\d*m/g, "");
        assert.match(shown, /os\.system\('evil'\)/);
        for (const bad of ["\x1b", "\x9b", "\u202e", "\u2066"]) assert.ok(!shown.includes(bad), JSON.stringify([more, shown]));
        if (more !== " --json") assert.ok(shown.includes("\x5e[[1A^[[2K^M+A long text. <U+009B>2K <U+202E><U+2066>"), shown);
    }
    const piped = await edit("a.py");
    assert.ok(piped.out.includes(evil), "a patch holds the bytes as they are");
});

test("a folder is never left through a link, and what its repository configures is not run", async () => {
    const git = (...args) => assert.equal(spawnSync("git", ["-c", "core.fsmonitor=false", "-C", at("repo"), ...args]).status, 0, args.join(" "));
    write("repo/a/x.py", "LIMIT = 10\n");
    write("out/x.py", "SECRET_LIMIT = 10\n");
    git("init", "-q");
    git("add", "-A");
    git("-c", "user.name=n", "-c", "user.email=e", "commit", "-qm", "1");
    rmSync(at("repo/a"), {recursive: true});
    symlinkSync("../out", at("repo/a"));
    git("config", "core.fsmonitor", `touch '${at("PWNED")}'; false`);
    write("repo/b.py", "LIMIT = 10\n");
    said = {text: fenced("LIMIT = 64\n")};
    const done = await edit("repo", "--yes");
    assert.equal(done.code, 0, done.err);
    assert.equal(read("repo/b.py").toString(), "LIMIT = 64\n");
    assert.equal(read("out/x.py").toString(), "SECRET_LIMIT = 10\n");
    assert.ok(!JSON.stringify(asked).includes("SECRET"), "nor is it sent anywhere");
    assert.match(done.err, /left out repo\/a\/x\.py: it is reached by a symbolic link/);
    assert.ok(!existsSync(at("PWNED")));
});

test("a file's other names, owner and mode are kept or it is left alone", async () => {
    said = {text: fenced("LIMIT = 64\n")};
    write("hl.py", "LIMIT = 10\n");
    linkSync(at("hl.py"), at("hl2.py"));
    const linked = await edit("hl.py", "--write");
    assert.equal(linked.code, 1);
    assert.match(linked.err, /hl\.py: it has 2 names \(hard links\)/);
    assert.equal(read("hl2.py").toString(), "LIMIT = 10\n");
    if (process.getuid() !== 0) return;
    write("own.py", "LIMIT = 10\n");
    chownSync(at("own.py"), 65534, 65534);
    chmodSync(at("own.py"), 0o4755);
    assert.equal((await edit("own.py", "--write")).code, 0);
    assert.equal(read("own.py").toString(), "LIMIT = 64\n");
    const {uid, gid, mode} = statSync(at("own.py"));
    assert.deepEqual([uid, gid, mode & 0o7777], [65534, 65534, 0o4755]);
});

test("output that cannot be written is a failure", async () => {
    write("a.py", "LIMIT = 10\n");
    write("program", "<copy lines=\"1-1\"/></program>");
    said = {text: fenced("LIMIT = 64\n")};
    const edits = [`edit a.py -i x --server ${url}`, `edit a.py -i x --server ${url} --patch -`, `edit a.py -i x --server ${url} --json`];
    const commands = ["--help", "--version", "man", "man serve", "completions bash", `inspect '${targetModel}'`, `tokenize --model '${targetModel}' <a.py`,
        `generate --model '${targetModel}' -p x -n 2`, ...edits];
    for (const command of commands) {
        for (const to of [">/dev/full", ">&-"]) {
            const done = await run("sh", "-c", `'${program}' ${command} ${to}`);
            assert.equal(done.code, 1, `${command} ${to}: ${done.err}`);
            assert.match(done.err, /redline: standard output could not be written/);
        }
        assert.equal((await run("sh", "-c", `'${program}' ${command}`)).code, 0, command);
    }
});
