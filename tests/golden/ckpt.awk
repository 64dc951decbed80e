# SPDX-License-Identifier: Apache-2.0
# Reads a strategy checkpoint as `protoc --decode` prints it, and writes a line for each item:
#   current_stage N
#   strategy NODE stage S VECTOR...
#   layout PARAM dev VECTOR map VECTOR split N offset N field N step N size N
# A vector is 1,2,3, or - when it is empty; split and offset count messages, dev and map join theirs
# with '|'. What a message lacks is missing in its line.

function vector(list) {
  return list == "" ? "-" : substr(list, 2)
}

function unquoted(s) {
  gsub(/^"|"$/, "", s)
  return s
}

$2 == "{" {
  depth++
  block[depth] = $1
  if ($1 == "parallel_strategy_item" || $1 == "parallel_layout_item") {
    name = ""
    text = ""
    split_n = offset_n = 0
    dev = map = ""
  }
  dims = ""
  next
}

$1 == "}" {
  b = block[depth--]
  if (b == "parallel_strategy")
    text = text " " vector(dims)
  else if (b == "dev_matrix")
    dev = dev "|" vector(dims)
  else if (b == "tensor_map")
    map = map "|" vector(dims)
  else if (b == "param_split_shape")
    split_n++
  else if (b == "indices_offset")
    offset_n++
  else if (b == "parallel_strategy_item")
    print "strategy " name text
  else if (b == "parallel_layout_item")
    print "layout " name " dev " substr(dev, 2) " map " substr(map, 2) " split " split_n " offset " offset_n text
  next
}

$1 == "current_stage:" { print "current_stage " $2 }
$1 == "node_name:" || $1 == "param_name:" { name = unquoted($2) }
$1 == "dim:" { dims = dims "," $2 }
$1 == "stage:" { text = text " stage " $2 }
$1 == "field:" { text = text " field " $2 }
$1 == "opt_weight_shard_step:" { text = text " step " $2 }
$1 == "opt_weight_shard_size:" { text = text " size " $2 }
