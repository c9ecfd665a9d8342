# SPDX-License-Identifier: MIT
# Makes of include/cuwarden/cuwarden.h what man/cuwarden.3 says of errors, structures and functions.

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

function put_function(head,  name, list, count, i, word) {
  name = head
  sub(/^static inline /, "", name)
  list = name
  sub(/\(.*/, "", name)
  sub(/.*[ *]/, "", name)
  sub(/^[^(]*\(/, "", list)
  sub(/\)[^)]*$/, "", list)
  if (name ~ /_$/) { text = ""; return }
  out = out ".It Fn " name
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

/^struct cuwarden_[a-z_]+ \{$/ && $2 != "cuwarden_table" { in_struct = 1 }
in_struct { structures = structures plain($0) "\n"; if (/^\};/) { in_struct = 0; structures = structures "\n" } next }
/^typedef .*_fn\)/ { structures = structures plain($0) "\n\n" }

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
/^\/\*/ { in_comment = 1; text = "" }
in_comment {
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
  print ".El\n.Ss Structures\n.Bd -literal"
  sub(/\n+$/, "\n", structures)
  printf "%s", structures
  print ".Ed"
  printf "%s", out
  if (in_list) print ".El"
}
