# SPDX-License-Identifier: MIT
# metrics.test: the text format of Prometheus, read.
import re
LINE = re.compile(r'([a-z_]+)\{((?:[a-z]+="(?:[^"\\\n]|\\["\\n])*",?)*)\} (\S+)\n|([a-z_]+) (\S+)\n')
def parse(text):
    """Values by name and labels; each metric has its HELP and TYPE once, before its lines."""
    values, types, name = {}, {}, None
    for line in text.splitlines(True):
        if line.startswith("# HELP "):
            name = line.split()[2]
            assert name not in types and len(line.split()) > 3, line
        elif line.startswith("# TYPE "):
            assert line.split()[2] == name and line.split()[3] in ("gauge", "counter"), line
            types[name] = line.split()[3]
        else:
            match = LINE.fullmatch(line)
            assert match, line
            assert (match[1] or match[4]) == name and name in types, line
            labels = tuple(re.findall(r'([a-z]+)="((?:[^"\\]|\\.)*)"', match[2] or ""))
            assert (name, labels) not in values, line
            values[name, labels] = float(match[3] or match[5])
    for name, kind in types.items():
        assert (kind == "counter") == name.endswith("_total"), name
    return values, types
