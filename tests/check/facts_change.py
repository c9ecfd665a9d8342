# SPDX-License-Identifier: MIT
# facts.test: a result of gpu-check with other facts.
import json, sys
r = json.load(open(sys.argv[1]))
r["simulated"] = False
r["gpu"] = "GPU X"
# Where the simulated driver differs, or a busy machine may let a kernel end too soon.
r["facts"].update({
    "block-after-free-is-zero": "no, the same address", "device-use-of-64MiB-and-1": "pages of 2 MiB, 69206016 bytes",
    "query-event-of-one-not-current": "600", "query-event-with-no-context": "600",
})
for change in sys.argv[3:]:
    name, value = change.split("=", 1)
    r["facts"][name] = value
with open(sys.argv[2], "w") as file: # as gpu-check writes it: a fact in each line
    for key in ("gpu", "driver", "cuda", "commit", "date", "simulated"):
        file.write('%s  "%s": %s' % ("{\n" if key == "gpu" else ",\n", key, json.dumps(r[key])))
    facts = ",\n".join("    %s: %s" % (json.dumps(n), json.dumps(v)) for n, v in r["facts"].items())
    file.write(',\n  "facts": {\n%s\n  },\n  "tests": [\n  ]\n}\n' % facts)
