// Checks that deploy/sbom.py makes a bill of materials that matches CycloneDX's schema and lists the program's parts.
import assert from "node:assert/strict";
import {execFileSync, spawnSync} from "node:child_process";
import {existsSync, mkdtempSync, readFileSync, rmSync} from "node:fs";
import {tmpdir} from "node:os";
import {join, resolve} from "node:path";
import {test} from "node:test";
import {Spec, Validation} from "@cyclonedx/cyclonedx-library";

const script = join(process.env.REDLINE_SOURCE, "deploy/sbom.py");
const build = resolve(process.env.REDLINE_BUILD);
const missing = ["python3", "readelf", "ninja", "dpkg-query"].filter((tool) => spawnSync("sh", ["-c", `command -v ${tool}`]).status !== 0);
const skip = missing.length > 0 && `no ${missing}`;

function write() {
    const folder = mkdtempSync(join(tmpdir(), "redline-sbom-"));
    try {
        execFileSync(script, [build, join(folder, "bom.json")], {encoding: "utf8"});
        return readFileSync(join(folder, "bom.json"), "utf8");
    } finally {
        rmSync(folder, {recursive: true});
    }
}
const relations = (one) => one.properties.filter(({name}) => name === "redline:relation").map(({value}) => value);

test("the bill of materials passes CycloneDX's schema, and is the same when it is made again", {skip}, async () => {
    const text = write();
    const validator = new Validation.JsonStrictValidator(Spec.Version.v1dot5);
    assert.equal(await validator.validate(text), null);
    assert.notEqual(await validator.validate(text.replace('"purl"', '"pearl"')), null, "the validator looks");
    assert.equal(write(), text);
});

test("it has every library that the program is linked with, and the headers that are compiled in", {skip}, () => {
    const bom = JSON.parse(write());
    const by = (relation) => bom.components.filter((one) => relations(one).includes(relation)).map((one) => one.name);
    const linked = by("linked");
    const needed = execFileSync("readelf", ["-d", join(build, "redline")], {encoding: "utf8"}).match(/(?<=NEEDED.*\[lib)[a-z0-9+_-]+/g);
    assert.ok(needed.length > 8);
    for (const library of needed) {
        const isOf = (name) => name.startsWith(`lib${library}`) || name.replaceAll("-", "").includes(library.replaceAll(/[-_]/g, "")) ||
            {m: "libc6", c: "libc6", z: "zlib1g", brotlidec: "libbrotli1", openblas: "libopenblas0-pthread"}[library] === name;
        assert.ok(linked.some(isOf) || ["ld-linux-x86-64", "ld"].includes(library), `lib${library} in ${linked}`);
    }
    const headers = by("headers");
    for (const name of ["libmsgpack-cxx-dev", "nlohmann-json3-dev", "libcli11-dev", "cppzmq-dev", "libstdc++-12-dev"]) {
        assert.ok(headers.includes(name), `${name} in ${headers}`);
    }
    assert.ok(headers.some((name) => /^libboost1\.\d+-dev$/.test(name)), `Boost in ${headers}`);
    for (const name of ["libgtest-dev", "libgmock-dev", "googletest"]) assert.ok(!headers.includes(name), "tests are not the program");
    for (const one of bom.components) assert.match(one.purl, /^pkg:(deb\/debian|npm)\//);
});

test("it has the packages in the studio's page and not those that made it", {skip}, (t) => {
    if (!existsSync(join(build, "actors/http/studio/dist/packages.json"))) return t.skip("a build without the studio");
    const names = JSON.parse(write()).components.filter((one) => relations(one).includes("bundled"))
        .map((one) => (one.group ? `${one.group}/` : "") + one.name);
    for (const name of ["@codemirror/state", "@codemirror/view", "@lezer/common", "style-mod"]) assert.ok(names.includes(name), `${name} in ${names}`);
    for (const name of names) assert.ok(!name.includes("esbuild") && name !== "typescript", name);
});
