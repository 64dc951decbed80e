/* SPDX-License-Identifier: Apache-2.0 */
/* Pictures: DOT text, hostile names, rendering by a child process. */
#include <fcntl.h>
#include <graphviz/cgraph.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/vec.h"
#include "draw/dot.h"
#include "draw/graphviz.h"
#include "emit_test.h"

/* An operator; its name, type and cell are set by hand. */
static const struct ap_pic_node plain = {.name = "n", .type = "T", .cell = "", .cut = "",
	.slice = "", .comms = "", .key = ""};

static const char *dot_of(struct ap_ctx *ctx, const struct ap_picture *pic)
{
	const char *text;
	uint32_t nbox;
	size_t len;

	ck_assert_int_eq(ap_emit_dot(ctx, pic, AP_PIC_FULL, &text, &len, &nbox), AP_OK);
	ck_assert_uint_eq(strlen(text), len);
	return text;
}

static const struct ap_pic_node small_nodes[] = {
	{"Default/a-A/MatMul-op0", "MatMul", "a", "1x4, 4x2 to 1x2", "slice 8x16",
		"AllReduce of 4, 2.00 MiB\ngradient AllReduce of 2, 1.00 KiB", "", AP_PIC_OPERATOR,
		AP_PIC_BOTH, 2, 2e-6, NULL, {2, 4, 1, 1, 1, 1, 1}, NULL},
	{"add", "Add", "a", "8x1", "", "", "", AP_PIC_OPERATOR, AP_PIC_BATCH, 0, 1e-6, NULL,
		{2, 1, 1, 1, 1, 1, 1}, NULL},
	{"loss", "Mean", "", "", "", "", "", AP_PIC_OPERATOR, AP_PIC_WHOLE, 0, 0},
	{"x", "Input", "", "", "", "", "", AP_PIC_INPUT, AP_PIC_NONE, 0, 0},
};
static const struct ap_pic_edge small_edges[] = {
	{3, 0, "x", "", 0, 0},
	{0, 1, "h", "AllGather 2.00 MiB 14.0 us", 2 << 20, 14e-6},
	{1, 2, "y", "", 0, 0},
};
static const struct ap_picture small = {"net on 8 x chip", "a < b\nstep", 4, 3, small_nodes, 3,
	small_edges};

/* An HTML-like label as it is read: rows are lines, cells of a row have a blank between them. */
static const char *read_html(struct ap_ctx *ctx, const char *html)
{
	struct ap_str out = new_str(ctx);
	size_t row = 0; /* where it begins */

	for (const char *s = html; *s; s++) {
		if (*s == '&') {
			char *end;

			ck_assert_int_eq(s[1], '#');
			ap_str_addc(&out, (char)strtol(s + 2, &end, 10));
			ck_assert_int_eq(*end, ';');
			s = end;
		} else if (*s != '<') {
			ap_str_addc(&out, *s);
		} else {
			if ((!strncmp(s, "</TR>", 5) || !strncmp(s, "<BR", 3)) && out.len > row) {
				if (out.s[out.len - 1] == ' ')
					out.s[--out.len] = '\0';
				ap_str_addc(&out, '\n');
				row = out.len;
			}
			if (!strncmp(s, "</TD>", 5) && out.len > row && out.s[out.len - 1] != ' ' &&
				out.s[out.len - 1] != '\n')
				ap_str_addc(&out, ' ');
			s += strcspn(s, ">");
			ck_assert_int_eq(*s, '>');
		}
	}
	while (out.len && strchr(" \n", out.s[out.len - 1]))
		out.s[--out.len] = '\0';
	return out.s;
}

/* id: of a box; NULL: the picture's own label. */
static const char *label_of(struct ap_ctx *ctx, const char *text, const char *id)
{
	char key[] = "label";
	Agraph_t *g = agmemread(text);
	Agnode_t *n;
	const char *label;

	ck_assert_ptr_nonnull(g);
	n = id ? agnode(g, ap_arena_strdup(ctx->arena, id), 0) : NULL;
	ck_assert(!id || n);
	label = read_html(ctx, n ? agget(n, key) : agget(g, key));
	agclose(g);
	return label;
}

START_TEST(text_of_a_small_picture)
{
	struct ap_ctx ctx = new_ctx();
	const char *text = dot_of(&ctx, &small);
	static const char *const parts[] = {
		"digraph plan {\n",
		"linelength=0",
		"rankdir=LR",
		"fontname=\"sans-serif\"",
		"\tsubgraph cluster_0 {\n",
		"n0\t[color=\"#12795c\",\n\t\t\tfillcolor=\"#d7f1e9\",\n",
		"tooltip=\"operator Default/a-A/MatMul-op0\"];",
		"BGCOLOR=\"#cfe2f3\"",
		"n0 -> n1\t[color=\"" AP_DOT_MOVE_COLOR "\",\n",
		"label=\" AllGather 2.00 MiB 14.0 us\",\n",
		"penwidth=5.0,\n\t\ttooltip=\"tensor h\"];",
		"shape=note",
		"n3 -> n0\t[tooltip=\"tensor x\"];",
	};
	static const struct {
		const char *id, *label;
	} labels[] = {
		{"n0",
			"#1 MatMul\nMatMul-op0\nbatch 2 sequence 4\n1x4, 4x2 to 1x2\nslice 8x16\nAllReduce "
			"of 4, 2.00 MiB\n"
			"gradient AllReduce of 2, 1.00 KiB\n2.00 us (11.8%)"},
		{"n1", "#2 Add\nadd\nbatch 2\n8x1\n1.00 us (5.9%)"},
		{"n2", "Mean\nloss\nwhole"},
		{"n3", "Input\nx"},
	};

	for (size_t i = 0; i < AP_COUNT(labels); i++)
		ck_assert_str_eq(label_of(&ctx, text, labels[i].id), labels[i].label);
	ck_assert_ptr_nonnull(strstr(
		label_of(&ctx, text, NULL), "net on 8 x chip\na < b\nstep\n3 operators in 3 boxes\n"));
	ck_assert_ptr_nonnull(strstr(label_of(&ctx, text, NULL), "samples are cut into 8 parts"));
	ck_assert_ptr_null(strstr(label_of(&ctx, text, NULL), "experts"));
	for (size_t i = 0; i < AP_COUNT(parts); i++)
		ck_assert_msg(strstr(text, parts[i]), "no \"%s\"", parts[i]);
	ck_assert_str_eq(dot_of(&ctx, &small), text);
	free_ctx(&ctx);
}
END_TEST

/* ---- hostile names ---- */

/* What a name is made of, and how that is shown. */
static const struct token {
	const char *raw, *shown;
} tokens[] = {
	{"\"", "\""}, {"\\", "\\"}, {"\n", "\n"}, {"\t", "\t"}, {"\x1b", "\\x1b"},
	{"\x01", "\\x01"},
	{"\r", "\\x0d"}, {"\x7f", "\\x7f"}, {"\xC2\x85", "\\x85"}, {"\xE2\x80\xAE", "\\u202e"},
	{"\xE2\x81\xA9", "\\u2069"}, {"\xEF\xBF\xBE", "\\ufffe"}, {"<b>", "<b>"},
	{"<TABLE>", "<TABLE>"}, {"&quot;", "&quot;"}, {"\\N\\G", "\\N\\G"},
	{"\"];evil[", "\"];evil["},
	{"];}", "];}"}, {"//", "//"}, {"/*", "/*"}, {"#", "#"}, {"\xC3\xA9", "\xC3\xA9"},
	{"\xF0\x9F\x98\x80", "\xF0\x9F\x98\x80"}, {"\xD7\x90\xD7\x91", "\xD7\x90\xD7\x91"},
	{"\xE2\x82\xAC", "\xE2\x82\xAC"}, {"-", "-"}, {".", "."}, {"0", "0"}, {"%s%n", "%s%n"},
	{"{|}", "{|}"}, {" ", " "}, {"node", "node"}, {"$(touch P)", "$(touch P)"},
	{"../x", "../x"},
	{"\\l", "\\l"}, {"\\\"", "\\\""}, {"x", "x"},
};

enum { HOSTILE = 600 };

struct hostile {
	struct ap_pic_node node[HOSTILE];
	struct ap_pic_edge edge[HOSTILE];
	const char *shown[HOSTILE];
};

static void make_hostile(struct ap_ctx *ctx, uint64_t *random, struct hostile *h, uint32_t count)
{
	for (uint32_t i = 0; i < count; i++) {
		struct ap_str raw = new_str(ctx), shown = new_str(ctx);

		for (uint64_t n = next_random(random) % 6 + 1; n; n--) {
			const struct token *t =
				&tokens[next_random(random) % AP_COUNT(tokens)];

			ap_str_add(&raw, t->raw);
			ap_str_add(&shown, t->shown);
		}
		h->node[i] = plain;
		h->node[i].name = h->node[i].type = raw.s;
		h->node[i].cell = i % 3 ? raw.s : "same";
		h->node[i].key = ap_arena_printf(ctx->arena, "%" PRIu32, i);
		h->edge[i] = (struct ap_pic_edge){.from = i, .to = (i + 7) % count,
			.tensor = raw.s, .moves = i % 2 ? raw.s : ""};
		h->shown[i] = shown.s;
	}
}

/* A label as Graphviz would show it. */
static const char *unescape(struct ap_ctx *ctx, const char *s)
{
	struct ap_str out = new_str(ctx);

	for (; *s; s++) {
		if (*s != '\\') {
			ap_str_addc(&out, *s);
			continue;
		}
		s++;
		ck_assert_msg(*s == '\\' || *s == 'n', "stray backslash before '%c'", *s);
		ap_str_addc(&out, *s == 'n' ? '\n' : '\\');
	}
	return out.s;
}

/* Two texts and a third, as rows: those that are empty are none. */
static const char *lines(struct ap_ctx *ctx, const char *a, const char *b, const char *c)
{
	const char *all = ap_arena_printf(ctx->arena, "%s\n%s%s", a, b, c);
	struct ap_str out = new_str(ctx);

	for (const char *end; *all; all = end + (*end == '\n')) {
		size_t len;

		end = all + strcspn(all, "\n");
		for (len = (size_t)(end - all); len && all[len - 1] == ' '; len--)
			;
		if (all + strspn(all, " \t") >= end)
			continue;
		ap_str_add(&out, out.len ? "\n" : "");
		ap_str_addn(&out, all, len);
	}
	return out.s;
}

static void check_hostile(struct ap_ctx *ctx, const char *text, const struct hostile *h,
	uint32_t count)
{
	Agraph_t *g = agmemread(text);
	char key[] = "label", tip[] = "tooltip";
	uint32_t edges = 0;

	ck_assert_ptr_nonnull(g);
	ck_assert_int_eq(agnnodes(g), count);
	for (uint32_t i = 0; i < count; i++) {
		char *id = ap_arena_printf(ctx->arena, "n%" PRIu32, i);
		Agnode_t *n = agnode(g, id, 0);

		ck_assert_ptr_nonnull(n);
		ck_assert_str_eq(read_html(ctx, agget(n, key)), lines(ctx, h->shown[i], h->shown[i], ""));
		ck_assert_str_eq(unescape(ctx, agget(n, tip)),
			ap_arena_printf(ctx->arena, "operator %s", h->shown[i]));
		for (Agedge_t *e = agfstout(g, n); e; e = agnxtout(g, e), edges++) {
			ck_assert_str_eq(unescape(ctx, agget(e, tip)),
				ap_arena_printf(ctx->arena, "tensor %s", h->shown[i]));
			ck_assert_str_eq(unescape(ctx, agget(e, key)),
				i % 2 ? ap_arena_printf(ctx->arena, " %s", h->shown[i]) : "");
		}
	}
	ck_assert_uint_eq(edges, count);
	agclose(g);
}

static bool has_dot(void)
{
	return system("command -v dot >/dev/null 2>&1") == 0;
}

/* Through the program itself, which reads and writes again. */
static const char *canonical(struct ap_ctx *ctx, const char *text)
{
	char path[] = "/tmp/ap_test_XXXXXX", buf[4096];
	struct ap_str out = new_str(ctx);
	int fd = mkstemp(path);
	FILE *pipe;
	size_t n;

	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(write(fd, text, strlen(text)), (ssize_t)strlen(text));
	close(fd);
	pipe = popen(ap_arena_printf(ctx->arena, "dot -Tcanon %s", path), "r");
	ck_assert_ptr_nonnull(pipe);
	while ((n = fread(buf, 1, sizeof buf, pipe)) > 0)
		ap_str_addn(&out, buf, n);
	ck_assert_int_eq(pclose(pipe), 0);
	unlink(path);
	return out.s;
}

static const struct scale {
	enum ap_pic_detail detail;
	uint32_t count;
} scales[] = {{AP_PIC_FULL, HOSTILE}, {AP_PIC_FOLD, 40}};

START_LOOP_TEST(hostile_names_survive, AP_COUNT(scales))
{
	const struct scale *s = &scales[_i];
	struct ap_ctx ctx = new_ctx();
	struct hostile *h = AP_NEW(ctx.arena, struct hostile);
	uint64_t random = seed_of_run();
	struct ap_picture pic = {"\\\"]", "\\\"]<TABLE>", s->count, s->count, h->node, s->count,
		h->edge};
	const char *text;
	uint32_t nbox;
	size_t len;

	make_hostile(&ctx, &random, h, s->count);
	ck_assert_int_eq(ap_emit_dot(&ctx, &pic, s->detail, &text, &len, &nbox), AP_OK);
	ck_assert_uint_eq(nbox, s->count);
	check_hostile(&ctx, text, h, s->count);
	if (has_dot())
		check_hostile(&ctx, canonical(&ctx, text), h, s->count);
	free_ctx(&ctx);
}
END_TEST

START_TEST(hostile_cells_survive)
{
	enum { CELLS = 30 };
	struct ap_ctx ctx = new_ctx();
	struct hostile *h = AP_NEW(ctx.arena, struct hostile);
	struct ap_picture pic = {"t", "", 2 * CELLS, 2 * CELLS, h->node, 0, NULL};
	uint64_t random = seed_of_run();
	char key[] = "label";
	uint32_t frames = 0;
	Agraph_t *g;

	make_hostile(&ctx, &random, h, 2 * CELLS);
	for (uint32_t i = 0; i < 2 * CELLS; i++) {
		h->node[i].name = "n";
		h->node[i].cell = ap_arena_printf(ctx.arena, "%uq%s", i / 2, h->node[i / 2].type);
	}
	g = agmemread(dot_of(&ctx, &pic));
	ck_assert_ptr_nonnull(g);
	for (Agraph_t *frame = agfstsubg(g); frame; frame = agnxtsubg(frame), frames++) {
		const char *label = read_html(&ctx, agget(frame, key));
		uint32_t i = (uint32_t)strtoul(label, NULL, 10);

		ck_assert_str_eq(label,
			lines(&ctx, ap_arena_printf(ctx.arena, "%uq%s (2)", i, h->shown[i]), "", ""));
	}
	ck_assert_uint_eq(frames, CELLS);
	agclose(g);
	free_ctx(&ctx);
}
END_TEST

START_TEST(names_longer_than_a_line)
{
	char name[2001];
	struct ap_pic_node node = plain;
	struct ap_picture pic = {"t", "", 1, 1, &node, 0, NULL};
	struct ap_ctx ctx = new_ctx();

	node.name = name;
	memset(name, '/', sizeof name - 1);
	for (size_t i = 0; i < sizeof name - 1; i += 3)
		name[i] = 'a';
	name[sizeof name - 1] = '\0';
	ck_assert_ptr_nonnull(strstr(dot_of(&ctx, &pic), name));
	free_ctx(&ctx);
}
END_TEST

START_TEST(names_that_dot_would_not_read)
{
	static char name[70001], type[70001];
	struct ap_pic_node node = plain;
	struct ap_picture pic = {name, "", 1, 1, &node, 0, NULL};
	struct ap_ctx ctx = new_ctx();
	const char *text, *label;
	size_t bad;

	node.name = name;
	node.type = type;
	memset(type, '"', sizeof type - 1);
	memset(name, 'x', sizeof name - 1);
	for (size_t i = 1; i + 1 < sizeof name - 1; i += 2) /* a cut at an even byte would split one */
		memcpy(name + i, "\xC3\xA9", 2);
	text = dot_of(&ctx, &pic);
	ck_assert(ap_str_utf8(text, strlen(text), &bad));
	ck_assert_ptr_nonnull(strstr(text, "\xC3\xA9..."));
	label = strstr(text, "label=<");
	ck_assert_ptr_nonnull(label);
	for (; label; label = strstr(label + 1, "label=<"))
		ck_assert_uint_lt(strcspn(label, "\n"), 16384);
	label = strstr(text, "tooltip=\"operator x");
	ck_assert_ptr_nonnull(label);
	ck_assert_uint_lt(strcspn(label, "\n"), 16384);
	free_ctx(&ctx);
}
END_TEST

START_TEST(an_empty_picture)
{
	struct ap_picture pic = {.title = "", .facts = ""};
	struct ap_ctx ctx = new_ctx();
	const char *text;
	uint32_t nbox;
	size_t len;

	ck_assert_ptr_null(strstr(dot_of(&ctx, &pic), "n0"));
	ck_assert_int_eq(ap_emit_dot(&ctx, &pic, AP_PIC_FOLD, &text, &len, &nbox), AP_OK);
	ck_assert_uint_eq(nbox, 0);
	free_ctx(&ctx);
}
END_TEST

/* A result that all layers read must not bind them together. */
START_TEST(hubs_do_not_pull)
{
	enum { USERS = 12 };
	struct ap_pic_node node[USERS + 1];
	struct ap_pic_edge edge[USERS];
	struct ap_picture pic = {"t", "", USERS + 1, USERS + 1, node, USERS, edge};
	struct ap_ctx ctx = new_ctx();
	const char *text;
	int notes = 0;

	for (uint32_t i = 0; i <= USERS; i++)
		node[i] = plain;
	for (uint32_t i = 0; i < USERS; i++)
		edge[i] = (struct ap_pic_edge){.from = 0, .to = i + 1, .tensor = "t", .moves = ""};
	text = dot_of(&ctx, &pic);
	ck_assert_ptr_nonnull(strstr(text, "n0 -> n1\t"));
	ck_assert_ptr_null(strstr(text, "n0 -> n2\t"));
	ck_assert_ptr_nonnull(strstr(text, "n13 -> n2\t[tooltip=\"tensor t\"]"));
	for (const char *s = text; (s = strstr(s, ">from T<")); s++)
		notes++;
	ck_assert_int_eq(notes, USERS - 1);
	free_ctx(&ctx);
}
END_TEST

/* ---- rendering ---- */

static int open_files(void)
{
	int n = 0;

	for (int fd = 0; fd < 256; fd++)
		n += fcntl(fd, F_GETFD) >= 0;
	return n;
}

static void check_nothing_left(int files)
{
	ck_assert_int_eq(open_files(), files);
	ck_assert_int_eq(waitpid(-1, NULL, WNOHANG), -1);
}

static const struct rendered {
	const char *format, *begins;
} formats[] = {{"svg", "<?xml"}, {"png", "\x89PNG"}, {"pdf", "%PDF"}};

START_LOOP_TEST(rendered, AP_COUNT(formats))
{
	const struct rendered *r = &formats[_i];
	struct ap_ctx ctx = new_ctx();
	const char *text = dot_of(&ctx, &small), *bytes;
	int files = open_files();
	size_t len;

	if (has_dot()) {
		ck_assert_int_eq(
			ap_emit_rendered(&ctx, text, strlen(text), r->format, &bytes, &len), AP_OK);
		ck_assert_uint_gt(len, 100);
		ck_assert_mem_eq(bytes, r->begins, strlen(r->begins));
		check_nothing_left(files);
	}
	free_ctx(&ctx);
}
END_TEST

/* Makes dir the PATH; the old one is given back by a second call. */
static const char *swap_path(struct ap_ctx *ctx, const char *dir)
{
	const char *old = ap_arena_strdup(ctx->arena, getenv("PATH"));

	setenv("PATH", dir, 1);
	return old;
}

/* Stand-ins for dot, first on the PATH. */
static const struct stand_in {
	const char *script;
	enum ap_status st;
	const char *says;
} stand_ins[] = {
	{NULL, AP_IO, "no program dot on the PATH"},
	{"exit 0", AP_IO, "without a word"},
	{"echo no fonts >&2; echo more >&2; exit 3", AP_IO, "the program dot failed: no fonts"},
	{"kill -9 $$", AP_IO, "ended by a signal"},
	{"exec <&-; echo picture; exec >&- 2>&-; exit 0", AP_OK, NULL},
	{"i=0; while [ $i -lt 20000 ]; do echo 0123456789 >&2; i=$((i+1)); done; cat", AP_OK, NULL},
	{"echo \"$1\"", AP_OK, NULL},
};

START_LOOP_TEST(programs_that_misbehave, AP_COUNT(stand_ins))
{
	const struct stand_in *s = &stand_ins[_i];
	struct ap_ctx ctx = new_ctx();
	char dir[] = "/tmp/ap_test_XXXXXX", *text = ap_arena_alloc(ctx.arena, 1, 1 << 20);
	const char *path, *bytes, *old_path;
	int files = open_files();
	size_t len;

	ck_assert_ptr_nonnull(mkdtemp(dir));
	path = ap_arena_printf(ctx.arena, "%s/dot", dir);
	if (s->script) {
		FILE *f = fopen(path, "w");

		fprintf(f, "#!/bin/sh\nPATH=/usr/bin:/bin\n%s\n", s->script);
		fclose(f);
		chmod(path, 0700);
	}
	old_path = swap_path(&ctx, dir);
	signal(SIGPIPE, SIG_DFL); /* a write to a closed pipe would end this test */
	memset(text, '#', (1 << 20) - 1);
	ck_assert_int_eq(ap_emit_rendered(&ctx, text, strlen(text), "svg", &bytes, &len), s->st);
	if (s->says)
		ck_assert_msg(strstr(last_message(&ctx, NULL), s->says), "%s",
			last_message(&ctx, NULL));
	check_nothing_left(files);
	swap_path(&ctx, old_path);
	if (s->script)
		unlink(path);
	rmdir(dir);
	free_ctx(&ctx);
}
END_TEST

static volatile sig_atomic_t stop_flag;

static void on_alarm(int sig)
{
	(void)sig;
	stop_flag = 1;
}

START_TEST(told_to_stop)
{
	char dir[] = "/tmp/ap_test_XXXXXX";
	struct ap_ctx ctx = new_ctx();
	const char *path, *bytes, *old_path;
	int files = open_files();
	size_t len;
	FILE *f;

	ck_assert_ptr_nonnull(mkdtemp(dir));
	path = ap_arena_printf(ctx.arena, "%s/dot", dir);
	f = fopen(path, "w");
	fprintf(f, "#!/bin/sh\nexec /bin/sleep 1000\n");
	fclose(f);
	chmod(path, 0700);
	old_path = swap_path(&ctx, dir);
	stop_flag = 0;
	ctx.stop = &stop_flag;
	signal(SIGALRM, on_alarm);
	alarm(1);
	ck_assert_int_eq(ap_emit_rendered(&ctx, "x", 1, "svg", &bytes, &len), AP_STOPPED);
	check_nothing_left(files);
	swap_path(&ctx, old_path);
	unlink(path);
	rmdir(dir);
	free_ctx(&ctx);
}
END_TEST
