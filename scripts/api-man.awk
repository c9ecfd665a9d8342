# SPDX-License-Identifier: MIT
# Makes of include/cuwarden/cuwarden.h what man/cuwarden.3 says of errors, types and functions.

function plain(text) {
  gsub(/\\/, "\\e", text)
  if (!in_struct) gsub(/\. /, ".\n", text)
  if (text ~ /^[.']/) text = "\\&" text
  return text
}

# The text of a comment, without its stars.
function comment(text) {
  sub(/^ *\/\*+ ?/, "", text)
  sub(/ *\*\/ *$/, "", text)
  sub(/^ \* ?/, "", text)
  return text
}

# The type is shown where it is not the usual int.
function put_function(head,  name, type, list, count, i, word) {
  name = head
  sub(/^static inline /, "", name)
  list = name
  sub(/\(.*/, "", name)
  type = name
  sub(/.*[ *]/, "", name)
  sub(/ ?[A-Za-z_]*$/, "", type)
  sub(/^[^(]*\(/, "", list)
  sub(/\)[^)]*$/, "", list)
  if (name ~ /_$/) { text = ""; return }
  out = out ".It " (type == "int" || type == "" ? "" : "Ft \"" type "\" ") "Fn " name
  if (list != "void") {
    count = split(list, word, /, */)
    for (i = 1; i <= count; i++) out = out " \"" word[i] "\""
  }
  out = out "\n" text
  text = ""
}

/^ *X\([A-Z_]+, [0-9]+,/ {
  row = $0
  sub(/^ *X\(/, "", row)
  name = row; sub(/,.*/, "", name)
  number = row; sub(/^[^,]*, */, "", number); sub(/,.*/, "", number)
  what = row; sub(/^[^"]*"/, "", what); sub(/".*/, "", what)
  if (what == row) { pending = name " " number; next }
  errors = errors ".It Dv CUWARDEN_" name " Pq " number "\n" plain(what) "\n"
  next
}
pending != "" && /"/ {
  split(pending, part, " ")
  what = $0; sub(/^[^"]*"/, "", what); sub(/".*/, "", what)
  errors = errors ".It Dv CUWARDEN_" part[1] " Pq " part[2] "\n" plain(what) "\n"
  pending = ""
  next
}

# From the first constant to the table all is shown as it stands, and later types with their comments.
function put_verbatim(line) {
  in_struct = 1
  types = types plain(line) "\n"
  in_struct = 0
}

/^#define CUWARDEN_ALL_DEVICES/ { in_types = 1 }
/^struct cuwarden_table \{$/ { in_types = 0 }
/^\/\* X\(|^#define CUWARDEN_ERRORS/ { next }
/^enum cuwarden_error \{$/ { in_errors = 1 }
in_errors { if (/^\};/) in_errors = 0; next }
in_types {
  if ($0 != "" || !was_empty) put_verbatim($0)
  was_empty = $0 == ""
  next
}
/^enum cuwarden_[a-z_]+ \{$/ { in_type = 1 }
in_type || /^#define CUWARDEN_NO_STREAM/ {
  if (raw != "") put_verbatim(raw)
  put_verbatim($0)
  raw = text = ""
  if (!in_type || /^\};/) { in_type = 0; put_verbatim("") }
  next
}
/^#define CUWARDEN_SCOPE\(/ {
  head = $0
  sub(/ *\\$/, "", head)
  sub(/^#define /, "", head)
  put_function(head)
  next
}

/^\/\* ---- .* ---- \*\/$/ {
  section = $0
  sub(/^\/\* ---- /, "", section); sub(/ ---- \*\/$/, "", section)
  if (section == "the way to the library") { text = ""; next }
  if (in_list) out = out ".El\n"
  out = out ".Ss " toupper(substr(section, 1, 1)) substr(section, 2) "\n.Bl -tag -width Ds\n"
  in_list = 1
  text = ""
  next
}
/^\/\*/ { in_comment = 1; text = raw = "" }
in_comment {
  raw = raw (raw == "" ? "" : "\n") $0
  line = comment($0)
  if (line != "") text = text plain(line) "\n"
  if (/\*\//) in_comment = 0
  next
}
/^static inline/ { head = $0; in_head = 1 }
in_head {
  if (head != $0) { more = $0; sub(/^ +/, " ", more); head = head more }
  if (head ~ /\)$/) { in_head = 0; put_function(head) }
  next
}

END {
  print ".Ss Errors\n.Bl -tag -width Ds -compact"
  printf "%s", errors
  print ".El\n.Ss Types and constants\n.Bd -literal"
  sub(/\n+$/, "\n", types)
  printf "%s", types
  print ".Ed"
  printf "%s", out
  if (in_list) print ".El"
}
