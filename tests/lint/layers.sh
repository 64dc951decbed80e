#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Usage: layers.sh SOURCE_ROOT
# A file of src/LAYER may include headers of its own layer and of those below it, by their full
# names; C and POSIX headers; and a foreign library's headers only in the file that cages it.
set -eu
cd "$1"

# Layer: what it may see, bottom up.
allowed='
autopar autopar
base base autopar
rule rule base
hw hw base
problem problem base
runlog runlog base
graph graph rule base
import import graph rule base
model model rule base
shard shard graph hw rule base
cost cost shard graph hw rule base
table table problem cost shard graph hw rule base
search search problem base
elim elim search problem base
rec rec search problem base
ilp ilp search problem base autopar
pipeline pipeline cost shard graph hw rule base
partition partition pipeline problem shard base
hybrid hybrid cost shard graph hw rule base
route route cost shard graph hw rule base
plan plan route pipeline problem cost shard graph hw rule base
drive drive plan route hybrid partition pipeline rec elim search table problem cost shard graph hw rule base
decision decision hybrid partition pipeline problem shard base
ckpt ckpt plan cost shard graph hw rule base
planfile planfile ckpt plan route pipeline search problem cost shard graph hw rule base autopar
diff diff planfile cost shard graph hw base
draw draw planfile plan shard graph rule hw base
report report draw runlog planfile plan route pipeline problem graph hw rule base autopar
explain explain report drive elim search table plan cost shard graph hw rule problem base autopar
bundle bundle report runlog planfile ckpt drive plan route pipeline cost shard graph hw rule base autopar
api api explain runlog bundle report draw diff planfile ckpt decision drive plan route hybrid partition pipeline search table problem cost shard import model graph hw rule base autopar
cli cli api base autopar
'

# Foreign header: the one file that may include it.
cages='
cJSON.h src/base/json.c
nettle/base16.h src/base/sha256.c
nettle/sha2.h src/base/sha256.c
expat.h src/base/xml.c
yaml.h src/base/yaml_read.c
glpk.h src/ilp/glpk_main.c
graphviz/cgraph.h src/draw/dot.c
node_strategy.pb-c.h src/ckpt/ckpt_pb.c
protobuf-c/protobuf-c.h src/ckpt/ckpt_pb.c
'

system='arpa/inet.h assert.h ctype.h dirent.h errno.h fcntl.h fnmatch.h float.h inttypes.h langinfo.h limits.h locale.h
math.h netinet/in.h poll.h pthread.h sched.h setjmp.h signal.h spawn.h stdalign.h stdarg.h stdatomic.h stdbool.h stddef.h stdint.h
stdio.h stdlib.h stdnoreturn.h string.h strings.h sys/mman.h sys/resource.h sys/socket.h sys/stat.h sys/time.h sys/types.h
sys/wait.h time.h unistd.h'

find src include -name '*.[ch]' -o -name '*.def' | LC_ALL=C sort |
  xargs grep -nE '^[[:space:]]*#[[:space:]]*include' |
  awk -v allowed="$allowed" -v cages="$cages" -v system_headers="$system" '
    function fail(why) { print file ":" line ": " why; bad = 1 }
    BEGIN {
      n = split(allowed, row, "\n")
      for (i = 1; i <= n; i++) {
        k = split(row[i], word, " ")
        for (j = 2; j <= k; j++)
          may[word[1], word[j]] = 1
      }
      n = split(cages, row, "\n")
      for (i = 1; i <= n; i++)
        if (split(row[i], word, " ") == 2)
          cage[word[1]] = word[2]
      n = split(system_headers, word, /[ \n]+/)
      for (i = 1; i <= n; i++)
        known[word[i]] = 1
    }
    {
      split($0, part, ":")
      file = part[1]; line = part[2]
      split(file, dir, "/")
      layer = dir[2]
      if (!match($0, /[<"][^>"]*[>"]/)) {
        fail("cannot be read: " $0)
        next
      }
      header = substr($0, RSTART + 1, RLENGTH - 2)
      angle = substr($0, RSTART, 1) == "<"
      if (header in cage) {
        if (cage[header] != file)
          fail(header " is caged in " cage[header])
      } else if (angle) {
        if (!(header in known))
          fail("<" header "> is neither C nor POSIX, nor has it a cage")
      } else {
        if (split(header, up, "/") != 2)
          fail("\"" header "\" is not of the form \"layer/file.h\"")
        else if (!((layer, up[1]) in may))
          fail("layer " layer " may not see \"" header "\"")
      }
    }
    END { exit bad }'
