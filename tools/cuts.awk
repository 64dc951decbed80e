# SPDX-License-Identifier: Apache-2.0
# Reads a plan as the program writes it, one key a line, and prints what it decides, without seconds and
# bytes: a line per operator and per redistribution, in the order of the plan. Layers with the same
# line share it, with their numbers in braces. Variable: options, for the header.

function key_of(line, part) {
	split(line, part, "\"")
	return part[2]
}

function value_of(line) {
	sub(/^ *"[a-z_]*": /, "", line)
	sub(/,$/, "", line)
	gsub(/, /, ",", line)
	gsub(/^"|"$/, "", line)
	return line
}

# [[8,1],[1,0]] as [8:1,1]: parts and, where there are several, how many ranks they lie apart.
function cut_of(layout, part, at, n, i, text) {
	gsub(/^\[\[?|\]?\]$/, "", layout)
	n = split(layout, part, /\],\[/)
	for (i = 1; i <= n; i++) {
		split(part[i], at, ",")
		text = text (i > 1 ? "," : "") at[1] (at[1] > 1 ? ":" at[2] : "")
	}
	return "[" text "]"
}

# A line "NAME REST"; the first number that is a whole part of NAME is its layer.
function add(name, rest, layer, id) {
	layer = ""
	if (match(name, /\.[0-9]+[.\/]/)) {
		layer = substr(name, RSTART + 1, RLENGTH - 2)
		name = substr(name, 1, RSTART) "{}" substr(name, RSTART + RLENGTH - 1)
	}
	id = name SUBSEP rest
	if (!(id in first)) {
		order[++lines] = id
		first[id] = last[id] = layer
	} else if (layer == last[id] + 1) {
		last[id] = layer
	} else if (layer != last[id]) {
		before[id] = layers_of(id) ","
		first[id] = last[id] = layer
	}
}

function layers_of(id) {
	return before[id] first[id] (first[id] == last[id] ? "" : "-" last[id])
}

function print_lines(i, part) {
	for (i = 1; i <= lines; i++) {
		split(order[i], part, SUBSEP)
		sub(/[{][}]/, "{" layers_of(order[i]) "}", part[1])
		printf "%-64s  %s\n", part[1], part[2]
	}
	lines = 0
	split("", first)
	split("", before)
}

function print_head() {
	print "# model:    " fact["graph", "name"] ", batch " fact["graph", "batch"]
	print "# machine:  " fact["machine", "devices"] " x " fact["machine", "chip"] ", " \
		fact["machine", "servers"] (fact["machine", "servers"] > 1 ? " servers" : " server")
	print "# options:  " options
	print "# search:   " fact["search", "mode"] ", " fact["search", "status"]
	print "\n# operator, type, cut of each operand"
}

/^ "/ {
	if (section == "operators")
		print_lines()
	section = key_of($0)
	if (section == "operators")
		print_head()
	else if (section == "redistributions")
		print "\n# redistributed tensor, steps, from, to (parts:distance of each dimension)"
	else if (section == "parameters")
		exit
}

section == "operators" && /^   "/ {
	key = key_of($0)
	if (key == "name") {
		name = value_of($0)
		sub(/.*\//, "", name)
	} else if (key == "type") {
		type = value_of($0)
	} else if (key == "cell") {
		cell = value_of($0)
	} else if (key == "in_strategy") {
		add(cell "/" name, sprintf("%-20s %s", type, value_of($0)))
	}
	next
}

section == "redistributions" && /^   "/ {
	key = key_of($0)
	if (key == "steps")
		steps = ""
	back = key == "back_steps" && steps != ""
	if (key == "back_steps" && !back)
		steps = "back "
	if (key == "shares")
		steps = "shared"
	move[key] = value_of($0)
	next
}

section == "redistributions" && /^    [{]"kind"/ && !back {
	split($0, part, "\"")
	steps = steps (steps == "" || steps == "back " ? "" : "+") part[4]
}

section == "redistributions" && /^  [}]/ {
	add(move["tensor"], sprintf("%-20s %s -> %s", steps, cut_of(move["from_layout"]),
		cut_of(move["to_layout"])))
}

/^  "/ { fact[section, key_of($0)] = value_of($0) }

END { print_lines() }
