# SPDX-License-Identifier: Apache-2.0
# Reads a plan as the program writes it, one key a line, and parts it into files. Variable: out, what
# their names begin with.
#   plan     what was decided: stages, order of passes, cuts, redistributions, where parameters lie
#   cost     objective and predicted times
#   memory   predicted memory, by stage and kind
#   extra    what else it says when it is asked to
#   all      everything but the echo of the settings and the work of the search
#   figures  "name value" for what trends are of; of several stages the largest

function key_of(line, part) {
	split(line, part, "\"")
	return part[2]
}

function note_figures(line, part, n, i) {
	gsub(/[{},":]+/, " ", line)
	n = split(line, part, " ")
	for (i = 1; i < n; i++)
		if (part[i] ~ /_(s|bytes)$/ && (!(part[i] in most) || part[i + 1] + 0 > most[part[i]]))
			most[part[i]] = part[i + 1] + 0
}

BEGIN {
	split("plan cost memory extra all figures", sides, " ")
	for (i in sides)
		printf "" > (out "." sides[i])
}

/^ "/ { section = key_of($0) }
{ key = key_of($0) }
section != "settings" && key != "settings" && key != "work" { print > (out ".all") }
section == "search" && key == "objective_s" { print > (out ".cost") }
section == "search" && key == "certificate" { print > (out ".extra") }
section == "prediction" { print > (out (/_bytes"/ ? ".memory" : ".cost")) }
section == "stages" && key ~ /_bytes$/ { print > (out ".memory") }
section == "prediction" || section == "search" && key == "objective_s" { note_figures($0) }

section !~ /^(pipeline|stages|operators|redistributions|parameters)$/ { next }
# sizes and prices follow from what was decided, and from what it was decided for
key ~ /(_s|_slice|_shape|bytes|^cost|^memory|^communications|^phase|^given)$/ { next }
{
	gsub(/"size": [0-9]+, |, "[a-z_]*_s": [-+.e0-9]+|, "bytes[a-z_]*": [0-9]+/, "")
	print > (out ".plan")
}

END {
	for (i in most)
		printf "%s %.17g\n", i, most[i] > (out ".figures")
}
