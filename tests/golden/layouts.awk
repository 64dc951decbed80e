# SPDX-License-Identifier: Apache-2.0
# Usage: awk -v devices=N -v states="accum stat" -f layouts.awk GRAPH LINES
# What MindSpore asks of the layouts of a strategy checkpoint, LINES from ckpt.awk: one device
# arrangement whose product is devices, maps of distinct axes that it has, as long as the shape of the
# parameter in the graph file (states of the optimizer are as their parameter), which divides, the rows also
# by the optimizer's shard. Prints what is wrong, and leaves with 1.

function wrong(what) {
  print $2 ": " what
  bad = 1
}

function owner(name, list, n, i) {
  sub(/^[0-9]+-/, "", name)
  n = split(states, list, " ")
  for (i = 1; i <= n; i++)
    if (index(name, list[i] ".") == 1)
      return substr(name, length(list[i]) + 2)
  return name
}

# The shard's devices: repeated axes from the right, of which the last may be divided further.
function check_shard(size, right, free, at, i) {
  right = 1
  for (i = ndev; i >= 1; i--) {
    if (dev[i] > 1 && !((ndev - i) in used)) {
      free++
      at = right
      if (size >= dev[i] ? size % dev[i] : dev[i] % size)
        wrong("shard of no axes")
      size = size >= dev[i] ? size / dev[i] : 1
    }
    right *= dev[i]
  }
  if (size != 1)
    wrong("shard of more devices than hold the slice")
  if (free == 1 && value["step"] != at)
    wrong("step " value["step"] ", expected " at)
}

FNR == NR {
  if (match($0, /\{"name": "[^"]*", "shape": \[[0-9, ]*\]/)) {
    s = substr($0, RSTART + 10, RLENGTH - 11)
    n = index(s, "\"")
    name = substr(s, 1, n - 1)
    sub(/.*\[/, "", s)
    gsub(/ /, "", s)
    shape[name] = s
  }
  next
}

$1 == "layout" {
  for (i = 3; i < NF; i += 2)
    value[$i] = $(i + 1)
  param = owner($2)
  if (!(param in shape)) {
    wrong("no parameter of the graph")
    next
  }
  if (value["dev"] ~ /\|/ || value["map"] ~ /\|/ || value["split"] != 1 || value["offset"] != 1)
    wrong("not one message of each kind")
  ndev = split(value["dev"], dev, ",")
  product = 1
  for (i = 1; i <= ndev; i++)
    product *= dev[i]
  if (product != devices)
    wrong("made for " product " devices")
  rank = split(shape[param], length_of, ",")
  if (split(value["map"], map, ",") != rank)
    wrong("map of another rank")
  split("", used)
  cut = 1
  for (i = 1; i <= rank; i++) {
    if (map[i] == -1)
      continue
    if (map[i] < 0 || map[i] >= ndev || (map[i] in used))
      wrong("axis " map[i])
    used[map[i]]
    parts = dev[ndev - map[i]]
    if (length_of[i] % parts)
      wrong("dimension " i " does not divide")
    length_of[i] /= parts
    cut *= parts
  }
  if (value["field"] != 0)
    wrong("field")
  size = value["size"] == -1 ? devices / cut : value["size"]
  if ((value["step"] == 0) != (size == 0))
    wrong("step " value["step"] " with size " value["size"])
  if (size && (size < 2 || (devices / cut) % size || length_of[1] % size))
    wrong("rows do not divide")
  if (size)
    check_shard(size)
  layouts++
}

END {
  if (!layouts) {
    print "no layouts"
    bad = 1
  }
  exit bad
}
