# SPDX-License-Identifier: MIT
"""calls.py DECLARATIONS NAMES: from a preprocessed header how to call each function of NAMES, for calls.c:

CALL(name, result, (parameter types), (null arguments), (plausible arguments))
UNDECLARED(name) for those that the header lacks"""
import re
import sys

text = re.sub(r"__attribute__\s*\(\((?:[^()]|\([^()]*\))*\)\)", " ", open(sys.argv[1]).read())
declared = {}
for declaration in re.split(r"[;{}]", text):
    found = re.search(r"(?:^|\s)((?:[\w]+[\s*]+)+)(cu[A-Z]\w*|cuda[A-Z]\w*)\s*\((.*)\)\s*$", declaration, re.S)
    if found and "typedef" not in found.group(1):
        result = " ".join(word for word in found.group(1).split() if word not in ("extern", "static", "inline"))
        declared.setdefault(found.group(2), (result, " ".join(found.group(3).split())))


def type_of(parameter):
    parameter = re.sub(r"\[[^]]*\]$", "", parameter.strip())
    arrays = "*" if parameter != re.sub(r"\[[^]]*\]$", "", parameter) else ""
    named = re.match(r"(.*[\s*])(\w+)$", parameter)
    words = parameter.split()
    if named and named.group(2) not in ("int", "char", "long", "unsigned", "void") and len(words) > 1 and words[-2] not in ("struct", "enum"):
        parameter = named.group(1)
    return parameter.strip() + arrays


def plausible(kind, number):
    if re.match(r"const char *\*$", kind):
        return f"NAME({number})"
    return f"ARGUMENT({kind}, {number}, {'SIZE' if kind.startswith('size_t') else 'NONE'})"


for name in open(sys.argv[2]).read().split():
    # Those for the per-thread default stream are the same to call.
    result, parameters = declared.get(name) or declared.get(re.sub(r"_pt[ds][sz]$", "", name)) or (None, None)
    if result is None or "(" in parameters or "..." in parameters:
        print(f"UNDECLARED({name})")
        continue
    kinds = [] if parameters in ("", "void") else [type_of(parameter.split("=")[0]) for parameter in parameters.split(",")]
    value = "TEXT" if "char" in result else "NOTHING" if result == "void" else "OTHER" if "struct" in result else "CODE"
    print("CALL(%s, %s, %s, (%s), (%s), (%s))" % (
        name, value, result, ", ".join(kinds) or "void", ", ".join(f"NULL_OF({kind})" for kind in kinds),
        ", ".join(plausible(kind, number) for number, kind in enumerate(kinds))))
