#!/usr/bin/env python3
"""library.py LIBSHIM SOURCE-ROOT

What can be said of the library without running it: its exports are those of
shim.map and carry no version, it needs libc alone and nothing of libc that
allocates, prints or ends a program, it is hardened, and every public
declaration states its contract.
"""
import glob
import os
import re
import subprocess
import sys

LIBRARY, ROOT = sys.argv[1:3]
BANNED = {"malloc", "calloc", "realloc", "free", "printf", "fprintf",
          "snprintf", "sprintf", "puts", "fopen", "fclose", "exit", "getenv",
          "memcpy", "memset", "strlen", "open", "read", "write", "mmap",
          "__tls_get_addr", "__stack_chk_fail"}


def output(*command):
    return subprocess.run(command, check=True, text=True,
                          stdout=subprocess.PIPE).stdout


def exports_are_those_of_the_map():
    with open(os.path.join(ROOT, "shim", "shim.map"), encoding="ascii") as file:
        text = re.sub(r"/\*.*?\*/", "", file.read(), flags=re.S)
    names = set(re.findall(r"([\w*]+);", text.split("local:")[0]))
    have = {line.split()[-1]
            for line in output("nm", "-D", "--defined-only", LIBRARY)
            .splitlines()}
    extra = {name for name in have
             if name not in names and not name.startswith("shim_")}
    missing = {name for name in names if "*" not in name} - have
    return [f"exported and not in the map: {name}" for name in extra] + \
           [f"in the map and not exported: {name}" for name in missing]


def exports_have_no_version():
    return [line for line in output("nm", "-D", "--defined-only",
                                    "--with-symbol-versions", LIBRARY)
            .splitlines() if "@" in line]


def every_shim_name_is_declared():
    text = "".join(open(path, encoding="ascii").read() for path in
                   glob.glob(os.path.join(ROOT, "include", "shim", "*")))
    events = re.findall(r"^EVENT\((\w+)", text, re.M)
    declared = set(re.findall(r"\b(shim_\w+)\(", text)) | \
        {f"shim_profiler_on_{event}" for event in events}
    have = {line.split()[-1] for line in
            output("nm", "-D", "--defined-only", LIBRARY).splitlines()}
    return [name for name in have
            if name.startswith("shim_") and name not in declared]


def it_needs_libc_alone():
    needed = re.findall(r"\(NEEDED\).*\[(.*)\]", output("readelf", "-dW",
                                                        LIBRARY))
    return [name for name in needed
            if name not in ("libc.so.6", "ld-linux-x86-64.so.2")]


def it_imports_nothing_that_allocates_prints_or_ends():
    names = {line.split()[-1].split("@")[0] for line in
             output("nm", "-D", "--undefined-only", LIBRARY).splitlines()}
    return sorted(names & BANNED)


def it_is_hardened():
    dynamic = output("readelf", "-dW", LIBRARY)
    segments = output("readelf", "-lW", LIBRARY)
    wrong = [f"not {word}" for word, text in
             (("BIND_NOW", dynamic), ("NODELETE", dynamic),
              ("GNU_RELRO", segments)) if word not in text
             and "NOW" not in dynamic.replace("BIND_", "")]
    if re.search(r"LOAD.* RWE ", segments) or \
            re.search(r"GNU_STACK.* RWE ", segments):
        wrong.append("a segment is writable and executable")
    if "TEXTREL" in dynamic or "RUNPATH" in dynamic or "RPATH" in dynamic:
        wrong.append("TEXTREL, RPATH or RUNPATH")
    return wrong


def thread_local_data_is_small():
    size = re.search(r"^ *TLS +\S+ +\S+ +\S+ +\S+ +(0x[0-9a-f]+)",
                     output("readelf", "-lW", LIBRARY), re.M)
    size = int(size.group(1), 16)
    return [] if size <= 512 else [f"{size} bytes of thread-local data"]


def a_count_is_one_instruction():
    code = output("objdump", "-d", "--no-show-raw-insn",
                  "--disassemble=counts_enter", LIBRARY)
    if re.search(r"(addq +\$0x1|incq).*\(%", code):
        return []
    return ["no increment of memory in counts_enter:", code]


def every_declaration_has_a_contract():
    wrong = []
    for path in glob.glob(os.path.join(ROOT, "include", "shim", "*.h")):
        text = re.sub(r"/\*.*?\*/", "", open(path, encoding="ascii").read(),
                      flags=re.S)
        for declaration in re.findall(r"^SHIM_API[^;]*;", text, re.M):
            if not re.search(r"SHIM_(INIT|SYNC|ASYNC)\b", declaration):
                wrong.append(f"{os.path.basename(path)}: {declaration}")
    return wrong


def hooks_include_public_headers_only():
    wrong = []
    for path in glob.glob(os.path.join(ROOT, "hooks", "*.c")):
        for line in open(path, encoding="ascii"):
            if line.startswith("#include") and "<" not in line:
                wrong.append(f"{path}: {line.strip()}")
    return wrong


def main():
    tests = [value for name, value in globals().items()
             if callable(value) and getattr(value, "__module__", "")
             == "__main__" and name not in ("output", "main")]
    print(f"1..{len(tests)}")
    failed = 0
    for number, test in enumerate(tests, 1):
        wrong = test()
        for line in wrong:
            print("#", line.replace("\n", "\n# "))
        failed += bool(wrong)
        print("not ok" if wrong else "ok", number, "-",
              test.__name__.replace("_", " "))
    sys.exit(failed > 0)


main()
