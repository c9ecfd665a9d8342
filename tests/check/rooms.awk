# SPDX-License-Identifier: MIT
# Reads the table of rooms, then edges "FROM TO PLACE WHAT", files without their ending. Prints what
# breaks the table as "PLACE RULE text". With -v picture=1 it reads the table alone and draws it.

function layer_of(name) { sub(/\/.*/, "", name); return name }

# The room of a file; "" if the table has none for it.
function room_of(file,  room) {
  if (file in rooms_known) return rooms_known[file]
  for (room = file; room ~ /\//; sub(/\/[^\/]*$/, "", room))
    if (room in uses) return rooms_known[file] = room
  room = layer_of(file) "/*"
  return rooms_known[file] = (room in uses && file !~ /\/.*\//) ? room : ""
}

function may_use(room, other) {
  if (room == other) return 1
  if (layer_of(room) == layer_of(other)) return index(uses[room], " " other " ")
  return index(layers[layer_of(room)], " " layer_of(other) " ") || index(uses[room], " " layer_of(other) "/ ")
}

FNR == NR && /^#|^$/ { next }

FNR == NR {
  name = $0; sub(/:.*/, "", name)
  list = $0; sub(/^[^:]*:/, "", list); sub(/\|.*/, "", list)
  what[name] = $0; sub(/^[^|]*\| */, "", what[name])
  count = split(list, word, " ")
  all = " "
  for (i = 1; i <= count; i++) {
    target = word[i]
    if (name !~ /\//) known = target in layers
    else if (target ~ /\/$/) known = substr(target, 1, length(target) - 1) in layers
    else { target = layer_of(name) "/" target; known = target in uses }
    if (!known) print "check/rooms:" FNR " table " name " uses " target ", which is not above it"
    all = all target " "
  }
  if (name ~ /\//) { uses[name] = all; order[++rooms] = name } else layers[name] = all
  next
}

{
  edge[$1, $2] = 1
  if (!(($1, $2) in listed)) { listed[$1, $2] = 1; to[$1] = to[$1] " " $2 }
  file[$1] = file[$2] = 1
  a = room_of($1); b = room_of($2)
  if (a == "") { print $3 " table " $1 " lies in no room"; next }
  if (b != "" && !may_use(a, b) && !(($3, b) in told)) {
    told[$3, b] = 1
    print $3 " room:" b " " a " must not use " $2 " (" $4 ")"
  }
}

# All that can be reached from a file, by edges inside `room` alone, or with "" by all.
function reach(from, set, room,  queue, head, tail, next_of, i, n) {
  split("", set)
  tail = 1; queue[1] = from
  for (head = 1; head <= tail; head++) {
    n = split(to[queue[head]], next_of, " ")
    for (i = 1; i <= n; i++)
      if (!(next_of[i] in set) && (room == "" || room_of(next_of[i]) == room)) {
        set[next_of[i]] = 1
        queue[++tail] = next_of[i]
      }
  }
}

END {
  if (picture) { draw(); exit }
  find_circles(0)
  find_circles(1)
}

# Files that reach each other. is_inside: by edges within their room.
function find_circles(is_inside,  f, g, n, members, names, done, forward, is_across, first) {
  for (f in file) {
    if (f in done || room_of(f) == "") continue
    reach(f, forward, is_inside ? room_of(f) : "")
    if (!(f in forward)) continue
    n = 1; is_across = 0; names = f; first = f
    for (g in forward) {
      if (g == f || room_of(g) == "") continue
      reach(g, backward, is_inside ? room_of(f) : "")
      if (!(f in backward)) continue
      n++; names = names " " g; done[g] = 1
      if (g < first) first = g
      if (room_of(g) != room_of(f)) is_across = 1
    }
    done[f] = 1
    if (is_inside ? n > 3 : is_across)
      print first (is_inside ? " circle a circle of " : " circle-of-rooms a circle of ") n " files: " sorted(names)
  }
}

function sorted(names,  list, n, i, j, t) {
  n = split(names, list, " ")
  for (i = 2; i <= n; i++)
    for (j = i; j > 1 && list[j] < list[j - 1]; j--) { t = list[j]; list[j] = list[j - 1]; list[j - 1] = t }
  names = list[1]
  for (i = 2; i <= n; i++) names = names " " list[i]
  return names
}

# A row for each room: what it uses of those above it, by number.
function draw(  i, k, n, layer, row, at, name, width) {
  for (i = 1; i <= rooms; i++) width[layer_of(order[i])]++
  for (i = 1; i <= rooms; i++) {
    if (layer_of(order[i]) != layer) {
      layer = layer_of(order[i]); n = 0
      row = layers[layer]; gsub(/^ | $/, "", row); gsub(/ /, ", ", row)
      print (i > 1 ? "\n" : "") layer (row == "" ? "" : " -> " row) ": " what[layer]
    }
    at[++n] = order[i]
    name = order[i]; sub(/^[^\/]*\//, "", name)
    row = ""
    for (k = 1; k < n; k++)
      row = row (index(uses[order[i]], " " at[k] " ") ? sprintf("%3d", k) : "  .")
    if (match(uses[order[i]], / [a-z]+\/ /)) row = row " +" substr(uses[order[i]], RSTART + 1, RLENGTH - 3)
    printf "%3d %-9s%-" (3 * width[layer] - 2) "s  %s\n", n, name, row, what[order[i]]
  }
}
