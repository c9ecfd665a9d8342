# SPDX-License-Identifier: MIT
"""Holds reports in JSON against the schema: schema.py SCHEMA FILE... Of lists the first 200 elements:
some tests leave 100,000 of them, and one is like the other. Files that are no report are passed
over."""
import json
import sys

try:
    import jsonschema
except ImportError:
    jsonschema = None

MOST = 200
BEGINS = '{"schema":"cuwarden-report/', '{"selection":{'


def cut(value):
    if isinstance(value, list):
        return [cut(element) for element in value[:MOST]]
    if isinstance(value, dict):
        return {key: cut(element) for key, element in value.items()}
    return value


def read_reports(path):
    """Several processes give one object after the other. What does not parse was broken on purpose, or cut
    off: that a report parses is for the tests to say."""
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            text = file.read()
    except FileNotFoundError:  # of a process that went on a little longer than the test
        return
    decoder, at = json.JSONDecoder(), 0
    while text.startswith(BEGINS, at):
        try:
            report, at = decoder.raw_decode(text, at)
        except ValueError:
            return
        yield report
        while text[at : at + 1].isspace():
            at += 1


def count_wrong(schema, paths):
    if not jsonschema:
        print("python3-jsonschema is not installed: reports in JSON are not held against their schema")
        return 0
    with open(schema, encoding="utf-8") as file:
        validator = jsonschema.Draft202012Validator(json.load(file))
    wrong = 0
    for path in paths:
        for report in read_reports(path):
            for error in validator.iter_errors(cut(report)):
                print("%s: %s: %s" % (path, error.json_path, error.message[:300]))
                wrong += 1
    return wrong


if __name__ == "__main__":
    sys.exit(1 if count_wrong(sys.argv[1], sys.argv[2:]) else 0)
