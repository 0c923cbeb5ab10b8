// Compares docs/reference with the program and the sources.
import assert from "node:assert/strict";
import {spawnSync} from "node:child_process";
import {readFileSync, readdirSync} from "node:fs";
import {join} from "node:path";
import {before, test} from "node:test";

const {REDLINE_SOURCE: source, REDLINE_BIN: program, REDLINE_MODELS: models} = process.env;
const {makeReference, readCommands} = await import(join(source, "docs/site/reference.mjs"));
const kept = (name) => readFileSync(join(source, "docs/reference", name), "utf8");

let made;
before(async () => { made = await makeReference(program, join(models, "demo-target.gguf"), source); });

test("the pages are what the program says", () => {
    assert.deepEqual(Object.keys(made).sort(), readdirSync(join(source, "docs/reference")).sort());
    for (const [name, text] of Object.entries(made)) assert.equal(kept(name), text, `docs/reference/${name}: make docs-reference writes it anew`);
});

/** Returns the rows of one command's tables, ["", flags, values, default, text, ""]. */
function rowsOf(page, title) {
    const section = page.split(/^## /m).find((part) => part.startsWith(`${title}\n`));
    return section.split("\n").filter((line) => /^\| `-/.test(line)).map((line) => line.split(/(?<!\\)\|/).map((cell) => cell.trim().replaceAll("`", "")));
}

test("options are the keys of the configuration, with its defaults", () => {
    const required = {serve: ["--model", "m"], worker: ["--role", "target", "--join", "ipc://x", "--model", join(models, "demo-target.gguf")],
        gateway: ["--join", "ipc://x"], broker: ["--listen", "ipc://x"]};
    for (const command of Object.keys(required)) {
        const environment = Object.fromEntries(Object.entries(process.env).filter(([name]) => !name.startsWith("REDLINE_")));
        if (command === "serve") required.serve[1] = join(models, "demo-target.gguf");
        const printed = spawnSync(program, [command, ...required[command], "--print-config"], {encoding: "utf8", env: environment});
        assert.equal(printed.status, 0, printed.stderr);
        const below = printed.stdout.slice(printed.stdout.indexOf(`\n[${command}]`));
        const keys = new Map([...below.matchAll(/^(?:# )?([a-z][a-z0-9-]*) = (.*?)(?: {2}#.*)?$/gm)].map(([, key, value]) => [key, value]));
        const rows = rowsOf(kept("options.md"), `redline ${command}`);
        const names = rows.map((row) => row[1].split(", ").at(-1).replace(/^--/, ""));
        assert.deepEqual([...names].sort(), [...keys.keys()].sort(), command);
        for (const [i, row] of rows.entries()) {
            assert.doesNotMatch(row[2], /no variable/, `${command} --${names[i]} is a key`);
            if (row[3] !== "") assert.equal(keys.get(names[i]).replaceAll('"', "").replace(/^\[(.*)\]$/, "$1"), row[3], `${command} --${names[i]}`);
        }
    }
});

test("every command of the manual is there", () => {
    const pages = readCommands(program).map(({words}) => ["redline", ...words].join("-"));
    const manual = spawnSync("sh", ["-c", 'd=$(mktemp -d) && "$0" man --write "$d" >/dev/null && ls "$d" && rm -r "$d"', program], {encoding: "utf8"}).stdout
        .trim().split("\n").map((name) => name.replace(/\.1$/, ""));
    assert.ok(manual.length > 15);
    for (const name of manual) if (!/^redline-(bench|plan)/.test(name)) assert.ok(pages.includes(name), name);
});

/** Returns the arguments of a call or braced list whose first bracket is at `at`. */
function argumentsAt(text, at) {
    const parts = [""];
    for (let i = at + 1, depth = 0, quoted = false; i < text.length; ++i) {
        const c = text[i];
        if (quoted) {
            if (c === "\\") parts[parts.length - 1] += c + text[++i];
            else parts[parts.length - 1] += c;
            quoted = c !== '"';
            continue;
        }
        if (c === '"') quoted = true;
        if (depth === 0 && /[)}]/.test(c)) return parts.map((part) => part.trim());
        if (/[({[]/.test(c)) ++depth;
        if (/[)}\]]/.test(c)) --depth;
        if (depth === 0 && c === ",") parts.push("");
        else parts[parts.length - 1] += c;
    }
    return parts;
}

test("errors that the sources name are in the list, and no others", () => {
    const files = ["actors/http", "actors/editing", "transport"].flatMap((folder) => readdirSync(join(source, folder), {recursive: true}).filter((path) => /\.[ch]pp$/.test(path))
        .map((path) => join(source, folder, path)));
    const found = new Set();
    const literal = (text) => /^"([a-z_]*)"$/.exec(text ?? "")?.[1];
    for (const file of files) {
        if (/gateway_probe\.cpp$/.test(file)) continue;
        const text = readFileSync(file, "utf8").replaceAll(/\/\/.*$/gm, "");
        // Gateway: {status, type, message, param, code, retry}; HTTP server: {status, type, code, message}.
        for (const match of text.matchAll(/(refusal \w+)?\{\s*(\d{3}),/g)) {
            const list = argumentsAt(text, match.index + match[0].indexOf("{"));
            const code = literal(match[1] ? list[2] : list[4]);
            if (code !== undefined && list.length >= 4) found.add(`${match[2]} ${code}`.trim());
        }
        for (const [status, name, which] of [[400, "bad_field", 2], [400, "refuse", 2], [400, "bad_id", 1], [404, "not_found", 1], [403, "forbidden", 1]]) {
            for (const match of text.matchAll(new RegExp(`\\b${name}\\(`, "g"))) {
                const code = literal(argumentsAt(text, match.index + match[0].length - 1)[which]);
                if (code) found.add(`${status} ${code}`);
            }
        }
        for (const [, code] of text.matchAll(/error\.code = "(\w+)"/g)) found.add(`503 ${code}`);
    }
    found.delete("499 cancelled");  // only in the log, because the client has left
    const listed = [...kept("errors.md").matchAll(/^\| (\d{3}) \| (?:`(\w+)`|none) \|/gm)].map(([, status, code]) => `${status} ${code ?? ""}`.trim());
    assert.ok(listed.length > 35);
    const withCode = (list) => [...list].filter((one) => one.includes(" ")).sort();
    assert.deepEqual(withCode(listed), withCode(found));
});
