#!/usr/bin/env python3
"""Writes a CycloneDX bill of materials of the program: the Debian packages that it is linked with or compiled from (shared and
static libraries and headers, according to the records of the linker and the compiler), and the npm packages in the studio's
page. The same build, made with Ninja, gives the same bytes. Usage: sbom.py BUILD_FOLDER OUT_FILE"""
import base64
import json
import os
import re
import subprocess
import sys
import uuid
from urllib.parse import quote


def run(*words, folder=None):
    done = subprocess.run(words, cwd=folder, capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"sbom.py: {' '.join(words[:3])}: {done.stderr.strip() or done.returncode}")
    return done.stdout


def is_of_system(path):
    return path.startswith(("/usr/", "/lib/", "/lib64/")) and not path.startswith("/usr/local/")


def inputs_of_program(build):
    """System files that the program is made from: headers, and other inputs of the linker except shared libraries."""
    inputs = run("ninja", "-t", "inputs", "redline", folder=build).splitlines()
    objects = {line for line in inputs if line.endswith(".o")}
    if not objects:
        sys.exit(f"sbom.py: expected a folder where Ninja builds the program, found {build}")
    found = {line for line in inputs if is_of_system(line) and ".so" not in os.path.basename(line)}
    current = None
    known = set()
    for line in run("ninja", "-t", "deps", folder=build).splitlines():
        if line and not line.startswith(" "):
            current = line.split(": #deps")[0]
        elif current in objects and line.strip():
            known.add(current)
            path = os.path.normpath(line.strip())
            if is_of_system(path):
                found.add(path)
    if not known:
        sys.exit(f"sbom.py: nothing is compiled in {build}: build the program first")
    return found


def linked_libraries(program):
    """The files of the shared libraries that the program itself names."""
    needed = re.findall(r"\(NEEDED\).*\[(.*)\]", run("readelf", "-d", program))
    places = dict(re.findall(r"^\s*(\S+) => (/\S+)", run("ldd", program), re.M))
    loaders = re.findall(r"^\s*(/\S+) \(0x", run("ldd", program), re.M)
    places.update({os.path.basename(path): path for path in loaders})
    missing = [name for name in needed if name not in places]
    if missing:
        sys.exit(f"sbom.py: {program} needs {', '.join(missing)}, which this machine lacks")
    return {os.path.realpath(places[name]) for name in needed}


def owners(files):
    """The packages of files; files of no package are left out. Debian's lists contain paths from before /lib moved."""
    packages = set()
    names = sorted({other for path in files for other in (path, path.removeprefix("/usr"), "/usr" + path)})
    for at in range(0, len(names), 500):
        said = subprocess.run(["dpkg-query", "-S", *names[at:at + 500]], capture_output=True, text=True, env={**os.environ, "LC_ALL": "C"})
        for line in said.stdout.splitlines():
            if line.startswith("diversion by"):
                continue
            packages.update(name.strip() for name in line.rpartition(": ")[0].split(","))
    return packages


def debian_components(build, program):
    relations = {}
    for relation, files in (("headers", inputs_of_program(build)), ("linked", linked_libraries(program))):
        for package in owners(files):
            relations.setdefault(package, set()).add(relation)
    release = dict(re.findall(r'^(\w+)="?([^"\n]*)', open("/etc/os-release").read(), re.M))
    components = []
    for package in sorted(relations):
        name, version, architecture, source, homepage, section = run(
            "dpkg-query", "-W", "-f=${Package}\t${Version}\t${Architecture}\t${source:Package}\t${Homepage}\t${Section}", package).split("\t")
        purl = (f"pkg:deb/{release.get('ID', 'debian')}/{quote(name, safe='')}@{quote(version, safe='')}?arch={architecture}"
                f"&distro={release.get('ID', 'debian')}-{release.get('VERSION_ID', '')}")
        components.append({
            "type": "library", "bom-ref": purl, "name": name, "version": version, "purl": purl,
            **({"externalReferences": [{"type": "website", "url": homepage}]} if homepage else {}),
            "properties": [{"name": "redline:relation", "value": relation} for relation in sorted(relations[package])] +
                          [{"name": "redline:debian-source", "value": source}]})
    return components


def npm_components(build, source):
    """The npm packages in the page; none for a build without the page."""
    made = os.path.join(build, "actors/http/studio/dist/packages.json")
    if not os.path.exists(made):
        return []
    locked = json.load(open(os.path.join(source, "actors/http/studio/package-lock.json")))["packages"]
    components = []
    for name in json.load(open(made)):
        one = locked[f"node_modules/{name}"]
        purl = f"pkg:npm/{quote(name, safe='/')}@{one['version']}"
        algorithm, _, digest = one["integrity"].partition("-")
        group, _, short = name.rpartition("/")
        components.append({
            "type": "library", "bom-ref": purl, **({"group": group} if group else {}), "name": short, "version": one["version"],
            "hashes": [{"alg": algorithm.upper().replace("SHA", "SHA-"), "content": base64.b64decode(digest).hex()}],
            "licenses": [{"license": {"id": one["license"]}}], "purl": purl,
            "properties": [{"name": "redline:relation", "value": "bundled"}]})
    return components


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__.rsplit("Usage: ", 1)[1])
    build, out = sys.argv[1:]
    source = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    program = os.path.join(build, "redline")
    version = run(program, "--version").split()[1].rstrip(",")
    components = debian_components(build, program) + npm_components(build, source)
    itself = f"pkg:generic/redline@{quote(version, safe='')}"
    bom = {
        "bomFormat": "CycloneDX", "specVersion": "1.5", "serialNumber": "", "version": 1,
        "metadata": {"component": {"type": "application", "bom-ref": itself, "name": "redline", "version": version, "purl": itself,
                                   "licenses": [{"license": {"id": "Apache-2.0"}}]}},
        "components": components,
        "dependencies": [{"ref": itself, "dependsOn": [one["bom-ref"] for one in components]}] +
                        [{"ref": one["bom-ref"]} for one in components]}
    # Derived from the contents, not random.
    bom["serialNumber"] = f"urn:uuid:{uuid.uuid5(uuid.NAMESPACE_URL, json.dumps(bom, sort_keys=True))}"
    with open(out, "w") as file:
        json.dump(bom, file, indent=1)
        file.write("\n")
    print(f"{out}: {len(components)} components")


main()
