// Writes the pages of docs/reference/ from what the program says: options from its --help, metrics and error codes from the
// /metrics of a server that has just started, endpoints from docs/openapi.json. Texts that no program can know are below.
// Usage: node reference.mjs PROGRAM MODEL REPOSITORY [OUT]. It fails when something has no text, or a text nothing to stand beside.
import {spawn, spawnSync} from "node:child_process";
import {mkdirSync, readFileSync, writeFileSync} from "node:fs";
import {join, resolve} from "node:path";
import {fileURLToPath} from "node:url";

/** What a client can do, by status and code. */
const remedies = {
    "400": "Change the request: `param` names the field, `message` says what was expected and found.",
    "400 context_length_exceeded": "Send less, or ask for fewer tokens: prompt and answer together do not fit into the context.",
    "400 event_id_of_other_model": "Resume at a server with the same model file, build, numerics and context, or start again without `Last-Event-ID`.",
    "400 event_id_of_other_request": "Send the very body that began the stream, or start again without `Last-Event-ID`.",
    "400 invalid_event_id": "Send the last `id` of the stream as it came, or start again without `Last-Event-ID`.",
    "400 invalid_grammar": "Change the grammar or schema; `message` has the place.",
    "400 invalid_template": "The model's chat template refuses this conversation, in the words of `message`: change the messages, or serve a model whose template takes them.",
    "400 not_a_stream": "`Last-Event-ID` goes with `stream: true` only.",
    "400 previous_response_not_found": "Nothing is stored: send the whole conversation as `input`.",
    "400 unsupported_endpoint": "Ask another server: there are no embeddings, rankings and slot files here.",
    "400 unsupported_parameter": "Leave the field out, or give it a value that asks for nothing.",
    "401 invalid_api_key": "Send a key: `Authorization: Bearer KEY`, `x-api-key: KEY` or `api-key: KEY`.",
    "403 host_not_allowed": "Without API keys, call the server by its address or as `localhost`, or start it with `--allowed-hosts`.",
    "403 origin_not_allowed": "Start the server with `--cors-origin` for this page, or with API keys.",
    "404": "There is no such path; `message` names the nearest that there is.",
    "404 file_not_found": "Put the file into the edit session first.",
    "404 model_not_found": "Take a name of `GET /v1/models`.",
    "404 session_not_found": "Open the edit session again: it was closed, idle for too long, or its server has ended.",
    "405": "Use one of the methods in `Allow`.",
    "408": "Send the request faster: it did not arrive in time.",
    "409 answer_diverged": "Start again without `Last-Event-ID`: the answer as it is computed now is another one.",
    "409 session_version_mismatch": "Base the change on the current version, which `GET` of the file shows.",
    "413 request_too_large": "Send less, or ask for fewer answers to a long prompt: a body has at most 8 MiB, a packed one unpacked, and a request holds no more than `--requests-mib` lets one have.",
    "413 session_limit": "Keep less in the edit session: it would hold more files or bytes than one may.",
    "415": "From a page in a browser, send `Content-Type: application/json`; pack bodies with gzip or not at all.",
    "417": "Leave `Expect` out; `100-continue` is the only one that is known.",
    "422 unusable_answer": "The model's answer is no whole file: ask again, give it more tokens, or take a larger model.",
    "429 queue_full": "Try again after `Retry-After`.",
    "429 session_limit": "Close edit sessions; `--live-sessions-max` bounds them.",
    "429 session_memory_limit": "Drop files or close edit sessions; `--live-mib` bounds them.",
    "429 too_many_requests": "Wait as `Retry-After` says, and keep fewer connections busy: yours are a quarter of all, and others need the rest.",
    "431 headers_too_large": "Send shorter headers.",
    "500": "Tell the operator the `x-request-id`; the server's log says more.",
    "500 answer_too_large": "Ask for a stream, for fewer choices or fewer log-probabilities: an answer that is not streamed has at most 64 MiB.",
    "501": "Send a body with `Content-Length` or in chunks.",
    "503 draining": "Try again after `Retry-After`, best at another server: this one is ending.",
    "503 loading": "Try again after `Retry-After`: the model is being loaded, or a pool has no broker or no worker; the message says which.",
    "503 no_worker": "Try again after `Retry-After`: no worker of the pool can take the request now.",
    "503 overloaded": "Try again after `Retry-After`: there is no room for the request's KV, or there are too many connections.",
    "503 session_lost": "Try again after `Retry-After`, or resume the stream with its last event's `id`.",
    "504 deadline_exceeded": "Nothing of the answer came for `--answer-timeout` seconds: ask for less, or for a stream.",
    "505": "Speak HTTP/1.1.",
};

const cell = (text) => text.replaceAll("|", "\\|").replaceAll("\n", " ");
const table = (head, rows) => [head, head.map(() => "---"), ...rows].map((row) => `| ${row.map(cell).join(" | ")} |`).join("\n");
const page = (title, ...parts) => [`# ${title}`, ...parts].join("\n\n") + "\n";

function call(program, ...args) {
    const environment = Object.fromEntries(Object.entries(process.env).filter(([name]) => !name.startsWith("REDLINE_")));
    const done = spawnSync(program, args, {encoding: "utf8", env: environment});
    if (done.status !== 0) throw new Error(`redline ${args.join(" ")}: ${done.stderr}`);
    return done.stdout;
}

/** "--rows-max UINT:INT in [1 - 8192]=512 (Env:REDLINE_ROWS_MAX)" and its text, as --help prints them. */
export function readOption(head, text) {
    const [, names, rest] = /^(\S+)(.*)$/.exec(head);
    const variable = /\(Env:(\w+)\)/.exec(rest)?.[1];
    let about = rest.replace(/\(Env:\w+\)/, "").replace(/Excludes:.*$/, "");
    const required = / REQUIRED/.test(about);
    const repeats = / \.\.\./.test(about);
    about = about.replace(" REQUIRED", "").replace(" ...", "").trim();
    const [, type, preset] = /^((?:\{[^}]*\}|\[[^\]]*\]|[^=])*)(?:=(.*))?$/.exec(about);
    const choices = /\{([^}]*)\}/.exec(type)?.[1].split(",");
    const range = /in \[(\S+) - (\S+)\]/.exec(type);
    const word = type.replace(/^(TEXT|UINT|INT|FLOAT):(?=\S)/, "").replace(/^INT in .*|^FLOAT in .*/, "").trim();
    const plain = {TEXT: "text", UINT: "number", INT: "number", FLOAT: "number", DIR: "folder", FILE: "file"};
    const value = choices ? choices.map((one) => `\`${one}\``).join(", ") : range ? `${range[1]} to ${range[2]}` : type === "" ? "" : plain[word] ?? `\`${word}\``;
    return {names: names.split(","), value, preset, required, repeats, variable, text: text.trim()};
}

/** Headings with their options, and the names of subcommands. */
export function readHelp(text) {
    const groups = [];
    const subcommands = [];
    let open;
    const end = () => {
        if (open) groups.at(-1).options.push(readOption(open.head, open.text));
        open = undefined;
    };
    let group = "";
    const lines = text.split("\n").slice(2);
    for (const [i, line] of lines.entries()) {
        if (/^Options come from flags/.test(line)) break;
        const heading = /^(\S.*):$/.exec(line);
        if (heading) {
            end();
            group = heading[1];
            if (group !== "Subcommands") groups.push({name: group, options: []});
        } else if (group === "Subcommands") {
            const name = /^ {2}(\S+)/.exec(line)?.[1];
            if (name) subcommands.push(name);
        } else if (/^ {2}\S/.test(line)) {
            end();
            // The text begins at the thirtieth column, on the next line where the option leaves it no room.
            const alone = /^ {30}/.test(lines[i + 1] ?? "");
            open = alone ? {head: line.trim(), text: ""} : {head: line.slice(2, 30).trim(), text: line.slice(30)};
        } else if (open && line.trim() !== "") {
            open.text += ` ${line.trim()}`;
        }
    }
    end();
    return {groups: groups.filter(({options}) => options.length > 0), subcommands};
}

/** Every command with its options; those of the studies are redline-bench's own. */
export function readCommands(program) {
    const all = [];
    const visit = (words) => {
        const help = call(program, ...words, "--help");
        const {groups, subcommands} = readHelp(help);
        all.push({words, about: help.split("\n")[0], groups: groups.map(({name, options}) =>
            ({name, options: options.filter(({names}) => !names.includes("--help"))})).filter(({options}) => options.length > 0)});
        for (const name of subcommands) if (!["bench", "plan"].includes(name)) visit([...words, name]);
    };
    visit([]);
    return all;
}

function optionsPage(program) {
    const titleOf = ({words}) => ["redline", ...words].join(" ");
    const commands = readCommands(program);
    const hasVariable = (one) => {
        const usual = `REDLINE_${one.names.at(-1).replace(/^-+/, "").toUpperCase().replaceAll("-", "_")}`;
        if (one.variable !== undefined && one.variable !== usual) throw new Error(`${one.names}: ${one.variable}, where the page says ${usual}`);
        return one.variable !== undefined;
    };
    const valueOf = (one) => [one.value, one.repeats ? "repeatable" : "", one.required ? "**required**" : "",
        one.names[0].startsWith("-") && !hasVariable(one) ? "no variable" : ""].filter(Boolean).join("; ");
    const sections = commands.map((command) => {
        const parts = [`## ${titleOf(command)}`, `${command.about.replace(/\.?$/, ".")}`];
        for (const {name, options} of command.groups) {
            if (command.groups.length > 1 || name === "Positionals") parts.push(`### ${name === "Positionals" ? "Arguments" : name} of ${titleOf(command)}`);
            parts.push(table([name === "Positionals" ? "argument" : "option", "values", "default", "means"], options.map((one) => [
                one.names.map((flag) => `\`${flag}\``).join(", "), valueOf(one), one.preset === undefined || one.preset === '""' ? "" : `\`${one.preset}\``,
                one.text.replaceAll("<", "\\<")])));
        }
        return parts.join("\n\n");
    });
    return page("Options of every command",
        `An option's value comes from the flag, else from its variable in the environment, else from the file given by \`--config\`, else it is the default
([configuration](../configuration.md)). \`--rows-max 256\` of \`serve\` is \`REDLINE_ROWS_MAX=256\` in the environment, and \`rows-max = 256\` below \`[serve]\` in the
file; so it is with all options but those with no variable; those of \`redline\` itself stand in the file above all sections. This page is written from \`--help\` of each command by \`make docs-reference\`, and a test
compares it with the program. \`redline bench\` and \`redline plan\` run the studies of \`redline-bench\`, which tells its options itself.`,
        commands.map((command) => `- [${titleOf(command)}](#${titleOf(command).toLowerCase().replaceAll(" ", "-")}): ${command.about.replace(/\.?$/, "")}`).join("\n"),
        ...sections);
}

/** A server of the model alone; what `ask` makes of its address. */
async function withServer(program, model, args, ask) {
    const child = spawn(program, ["serve", "--model", model, "--listen", "127.0.0.1:0", "--threads", "1", ...args], {stdio: ["ignore", "ignore", "pipe"]});
    try {
        let said = "";
        const url = await new Promise((done, failed) => {
            child.on("exit", (code) => failed(new Error(`redline serve ended with ${code}: ${said}`)));
            child.stderr.setEncoding("utf8").on("data", (text) => {
                said += text;
                const found = /serving \S+ on (http:\S+)\s/.exec(said);
                if (found) done(found[1]);
            });
        });
        while ((await fetch(`${url}/readyz`)).status !== 200) await new Promise((later) => setTimeout(later, 50));
        return await ask(url);
    } finally {
        child.removeAllListeners("exit");
        child.kill("SIGTERM");
    }
}

/** The series of a Prometheus text: name, kind, help, and the values of each label. */
export function readMetrics(text) {
    const all = new Map();
    for (const line of text.split("\n")) {
        const about = /^# (HELP|TYPE) (\S+) (.*)$/.exec(line);
        if (about) {
            const one = all.get(about[2]) ?? {name: about[2], labels: new Map()};
            one[about[1].toLowerCase()] = about[3];
            all.set(about[2], one);
            continue;
        }
        const sample = /^([a-zA-Z_:]\w*(?::\w+)*)(?:\{(.*)\})? /.exec(line);
        if (!sample) continue;
        const one = all.get(sample[1]) ?? all.get(sample[1].replace(/_(bucket|sum|count)$/, ""));
        for (const [, label, value] of (sample[2] ?? "").matchAll(/(\w+)="((?:[^"\\]|\\.)*)"/g)) {
            if (label === "le") continue;
            if (!one.labels.has(label)) one.labels.set(label, new Set());
            one.labels.get(label).add(value);
        }
    }
    return [...all.values()];
}

const metricsOf = async (program, model, ...args) => readMetrics(await withServer(program, model, args, async (url) => (await fetch(`${url}/metrics`)).text()));

// The values of these labels depend on the machine, the build or the model, or are documented elsewhere.
const openLabels = {path: "the API's paths", code: "[the errors](errors.md)", version: "of the program", build: "with the commit", model_name: "the model's", actor: "kinds of actors",
    cache_dtype: "", block_size: "", num_gpu_blocks: "", engine: "", running_lora_adapters: "", waiting_lora_adapters: ""};
function metricRows(series) {
    const labelsOf = ({labels}) => [...labels].map(([label, values]) => label in openLabels ? `\`${label}\`${openLabels[label] ? `: ${openLabels[label]}` : ""}` :
        `\`${label}\`: ${[...values].sort().map((value) => `\`${value}\``).join(", ")}`).join("; ");
    return [...series].sort((a, b) => (a.name < b.name ? -1 : 1)).map((one) => [`\`${one.name}\``, one.type, labelsOf(one), one.help]);
}

function metricsPage(plain, compatible) {
    const ours = plain.filter(({name}) => name.startsWith("redline_"));
    const process = plain.filter(({name}) => !name.startsWith("redline_"));
    const more = compatible.filter(({name}) => !plain.some((one) => one.name === name));
    const head = ["series", "kind", "labels", "means"];
    return page("Metrics",
        `What \`GET /metrics\` of a server or gateway has, in Prometheus' text format. [Operations](../operations.md#metrics) says what to watch. Every series is there
from the start, so that a rate of it is right from its first event. This page is written from a server that has just started by \`make docs-reference\`, and a
test compares it with one.`,
        "## Redline's", table(head, metricRows(ours)), "## Of the process", table(head, metricRows(process)),
        "## With --compat vllm", "The same numbers under the names that [routers made for vLLM](../api.md#routers-made-for-vllm) read.", table(head, metricRows(more)));
}

/** "400 context_length_exceeded", in order. */
export const readRefusals = (text) => [...text.matchAll(/^redline_refused_total\{code="(\w*)",status="(\d+)"\}/gm)]
    .map(([, code, status]) => `${status} ${code}`.trim()).sort();

function errorsPage(refusals) {
    const without = refusals.filter((one) => !(one in remedies));
    const idle = Object.keys(remedies).filter((one) => !refusals.includes(one));
    if (without.length + idle.length > 0) throw new Error(`errors without a text: ${without}; texts of no error: ${idle}`);
    return page("Errors",
        `An error's body is \`{"error": {"message", "type", "param", "code"}}\`; [the API](../api.md#errors) tells more. \`code\` is what a program should read: messages are for
people and may change. A client may simply send the request again where \`Retry-After\` is among the headers. \`redline_refused_total\` counts them by status and code.`,
        table(["status", "`code`", "what to do"], refusals.map((one) => {
            const [status, code] = one.split(" ");
            return [status, code ? `\`${code}\`` : "none", remedies[one]];
        })),
        `This page is written by \`make docs-reference\` from the series of a server that has just started, and a test compares it with those and with the sources.`);
}

function endpointsPage(root) {
    const document = JSON.parse(readFileSync(join(root, "docs/openapi.json"), "utf8"));
    const schemaOf = (schema) => schema?.$ref ? document.components.schemas[schema.$ref.split("/").at(-1)] : schema;
    const typeOf = (schema) => {
        if (schema.$ref) return typeOf(schemaOf(schema));
        if (schema.enum) return schema.enum.map((one) => `\`${one}\``).join(", ");
        if (schema.const !== undefined) return `\`${schema.const}\``;
        const any = schema.anyOf ?? schema.oneOf;
        if (any) return [...new Set(any.map(typeOf))].join(" or ");
        if (schema.type === "array") return `list of ${typeOf(schema.items ?? {})}`;
        return [schema.type ?? "anything"].flat().join(" or ");
    };
    const parts = document.tags.map(({name: tag}) => {
        const sections = [`## ${tag[0].toUpperCase()}${tag.slice(1)}`];
        for (const [path, item] of Object.entries(document.paths)) {
            for (const [method, operation] of Object.entries(item)) {
                if (method === "parameters" || !operation.tags.includes(tag)) continue;
                sections.push(`### ${method.toUpperCase()} ${path}`, [operation.summary, operation.description].filter(Boolean).map((text) => text.replace(/([^.?])$/, "$1.")).join(" "));
                const body = operation.requestBody?.content["application/json"]?.schema;
                const properties = Object.entries(schemaOf(body)?.properties ?? {});
                const required = new Set(schemaOf(body)?.required ?? []);
                if (properties.length > 0) {
                    sections.push(table(["field", "type", "means"], properties.map(([name, schema]) => [
                        `\`${name}\`${required.has(name) ? " (required)" : ""}`, typeOf(schema), schema.description ?? schemaOf(schema).description ?? ""])));
                }
                const answers = Object.entries(operation.responses).filter(([status]) => status !== "default")
                    .map(([status, {description}]) => `${status}: ${description.replace(/\.$/, "").replace(/^./, (first) => first.toLowerCase())}`);
                sections.push(`Answers with ${answers.join("; ")}; or [an error](errors.md).`);
            }
        }
        return sections.join("\n\n");
    });
    return page("Endpoints",
        `Every path that a server has, with the fields of its body: [docs/openapi.json](../openapi.json), the OpenAPI 3.1 document that a server shows at
\`GET /openapi.json\`, as a page. What fields do in detail: [the API](../api.md). This page is written by \`make docs-reference\`, and tests compare the
document with a server: each path and method, and each example.`,
        ...parts);
}

/** Path below docs/reference/ and text of every page. */
export async function makeReference(program, model, root) {
    const [plain, compatible, text] = [await metricsOf(program, model), await metricsOf(program, model, "--compat", "vllm"),
        await withServer(program, model, [], async (url) => (await fetch(`${url}/metrics`)).text())];
    return {"options.md": optionsPage(program), "endpoints.md": endpointsPage(root), "metrics.md": metricsPage(plain, compatible),
        "errors.md": errorsPage(readRefusals(text))};
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
    const [program, model, root, out = join(root, "docs/reference")] = process.argv.slice(2);
    mkdirSync(out, {recursive: true});
    for (const [name, text] of Object.entries(await makeReference(resolve(program), model, root))) writeFileSync(join(out, name), text);
}
