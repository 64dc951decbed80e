/* SPDX-License-Identifier: Apache-2.0 */
/* tests/bad/graph: every check has a file NAME.json (and NAME-2.json, NAME.variant.json ..) that
 * trips just it. */
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/diag.h"
#include "base/file.h"
#include "base/str.h"
#include "base/vec.h"
#include "graph/graph.h"
#include "graph/load.h"
#include "graph_fixture.h"
#include "harness.h"

#define DIR_BAD AP_SOURCE_ROOT "/tests/bad/graph/"
#define EXPECTED AP_SOURCE_ROOT "/tests/bad/graph.tsv"

enum { MOST_FILES = 1000 };
static char files[MOST_FILES][64]; /* without .json, in the order of their names */
static size_t nfile;

/* Some checks need devices: those of whole runs meet them. */
static bool is_of_graphs(const char *file)
{
	const char *name, *text;

	for (size_t i = 0; (name = ap_graph_check_at(i, &text)); i++) {
		size_t n = strlen(name);

		if (strncmp(file, name, n) == 0 && strchr("-.", file[n]))
			return true;
	}
	return false;
}

static int compare_names(const void *a, const void *b)
{
	return strcmp(a, b);
}

/* How many files there are; their names are in files. */
static size_t find_files(void)
{
	DIR *dir = opendir(DIR_BAD);

	nfile = 0;
	for (struct dirent *e; dir && nfile < MOST_FILES && (e = readdir(dir));) {
		const char *dot = strstr(e->d_name, ".json");

		snprintf(files[nfile], sizeof files[nfile], "%.*s", dot ? (int)(dot - e->d_name) : 0, e->d_name);
		nfile += dot && is_of_graphs(files[nfile]);
	}
	if (dir)
		closedir(dir);
	qsort(files, nfile, sizeof *files, compare_names);
	return nfile;
}

static bool is_there(const char *file)
{
	return bsearch(file, files, nfile, sizeof *files, compare_names);
}

/* Extra condition of the load that the file is about. */
static struct ap_graph_params params_for(const char *file)
{
	struct ap_graph_params p = {.micro_batches = 2};

	if (strncmp(file, "batch-scale", 11) == 0)
		p.batch = strcmp(file, "batch-scale-3") == 0 ? 3 : 6;
	p.unknown_batch_parallel = strncmp(file, "operator-assumed", 16) == 0;
	return p;
}

/* "shape-rank" of "shape-rank-2" and of "shape-rank.variant". */
static void check_name(const char *file, char *name, size_t size)
{
	size_t all = strcspn(file, "."), n = all;

	while (n > 0 && file[n - 1] >= '0' && file[n - 1] <= '9')
		n--;
	if (n < all && n > 0 && file[n - 1] == '-')
		n--;
	else
		n = all;
	snprintf(name, size, "%.*s", (int)n, file);
}

static enum ap_status load_file(const char *file, const struct ap_graph **g)
{
	const char *path = ap_arena_printf(ctx.arena, DIR_BAD "%s.json", file);
	struct ap_graph_params params = params_for(file);
	struct ap_json *doc;
	char *text;
	size_t len;

	ck_assert_int_eq(ap_file_read(&ctx, path, AP_FILE_MAX_BYTES, &text, &len), AP_OK);
	ck_assert_int_eq(ap_json_parse(&ctx, "bad.json", text, len, 0, &doc), AP_OK);
	return ap_graph_load(&ctx, doc, "", &params, g);
}

/* The pointer of the first message, as it is printed: "error: FILE:LINE:COL: /pointer (..": */
static const char *first_pointer(void)
{
	const char *p = strstr(messages(), "bad.json:"), *end;

	ck_assert_ptr_nonnull(p);
	p = strchr(p, ' ') + 1;
	if (*p != '/')
		return "";
	end = p + strcspn(p, ": ");
	return ap_arena_strndup(ctx.arena, p, (size_t)(end - p));
}

TEST_FIXTURE(fixture_setup, fixture_teardown)

START_LOOP_TEST(exactly_this_check_speaks, find_files())
{
	const char *file = files[_i];
	const struct ap_graph *g;
	enum ap_level level;
	const char *check, *text;
	enum ap_status st;
	char name[64];

	check_name(file, name, sizeof name);
	st = load_file(file, &g);
	ck_assert_ptr_nonnull(ap_diag_text(ctx.diag, 0, &level, &check));
	for (size_t i = 0; (text = ap_diag_text(ctx.diag, i, &level, &check)); i++)
		ck_assert_msg(check && strcmp(check, name) == 0, "%s: %s", file, text);
	ck_assert_int_eq(st == AP_OK, ap_diag_count(ctx.diag, AP_ERROR) == 0);
}
END_TEST

/* Where each file is wrong, and what the load ends with: EXPECTED, rewritten where AP_UPDATE is set. */
START_TEST(places_are_as_expected)
{
	struct ap_str now;
	char *text;
	size_t len;

	ap_str_init(&now, ctx.arena);
	for (size_t i = 0; i < find_files(); i++) {
		const struct ap_graph *g;
		enum ap_status st;

		ctx.diag = ap_diag_create(ctx.arena, false);
		st = load_file(files[i], &g);
		ap_str_addf(&now, "%s\t%s\t%s\n", files[i], ap_status_text(st), first_pointer());
	}
	if (getenv("AP_UPDATE")) {
		FILE *f = fopen(EXPECTED, "w");

		ck_assert_ptr_nonnull(f);
		fputs(now.s, f);
		fclose(f);
	}
	ck_assert_int_eq(ap_file_read(&ctx, EXPECTED, AP_FILE_MAX_BYTES, &text, &len), AP_OK);
	ck_assert_str_eq(now.s, text);
}
END_TEST

START_LOOP_TEST(warnings_are_errors_of_a_strict_sink, find_files())
{
	const char *file = files[_i];
	const struct ap_graph *g;
	bool warns;

	if (load_file(file, &g) != AP_OK)
		return;
	warns = ap_diag_count(ctx.diag, AP_WARNING) > 0;
	ctx.diag = ap_diag_create(ctx.arena, true);
	ck_assert_int_eq(load_file(file, &g), warns ? AP_MEANING : AP_OK);
}
END_TEST

START_TEST(every_check_has_a_file)
{
	const char *name, *text;

	find_files();
	for (size_t i = 0; (name = ap_graph_check_at(i, &text)); i++) {
		ck_assert_msg(is_there(name), "no bad file for %s", name);
		ck_assert_uint_gt(strlen(text), 0);
	}
}
END_TEST

/* Words that the message of a file must have. */
static const struct {
	const char *file, *words;
} texts[] = {
	{"schema-2", "looks like a rank table"},
	{"schema", "supported: autopar-graph/1"},
	{"shape-extent-2", "is -1; dynamic shapes are not supported"},
	{"operator-known-2", "did you mean \"MatMul\""},
	{"operator-assumed", "(operator \"mm\"): no rule is known for operator type \"Foo\"; it"},
	{"operator-known-4", "operator type \"Custom\" is known but not planned with: its kernel"},
	{"attr-unknown", "did you mean \"transpose_b\""},
	{"key-unknown-2", "\"optimizer\""},
	{"pin-view-2", "MindSpore's searches give Cast the layout of its producer"},
	{"edge-known", "(operator \"mm\"): no tensor \"v\""},
	{"edge-cycle", "cycle: self -> self "},
	{"edge-cycle-2", "cycle: p -> q -> p "},
	{"edge-cycle-3", "n8 -> n9 -> ... (20 operators)"},
	{"tensor-unique-2", "result of operator \"mm\" too"},
	{"operator-shape", "dimension 0 of operand 1 is 5, dimension 1 of operand 0 is 6"},
	{"operator-attr", "attribute axis is 2; with 2 dimensions -2..1 is allowed"},
	{"operator-attr-11", "attribute input_layout is NTD; BSH is expected"},
	{"operator-dtype", "operand 1 is float32; float16 is expected"},
	{"output-shape", "declared as [4, 3]; [4, 2] is inferred"},
	{"pin-length-2", "(operator \"mm\"): 1 numbers; input 1 (\"w\") has 2 dimensions"},
	{"pin-value", "(operator \"mm\"): input 0 (\"x\"), dimension 0 of length 4: 0 parts; at least"},
	{"pin-value-2", "input 0 (\"x\"), dimension 0 of length 4: 8 parts; divisors of the length"},
	{"batch-mixed", "(operator \"gram\"): two dimensions carry the batch; micro-batches would "
		"change the result [batch-mixed]\n"},
	{"batch-mixed-6", "(operator \"add\"): the batch lies in another order in one of its tensors; "
		"micro-batches would change the result [batch-mixed]\n"},
	{"batch-parts", "(operator \"thirds\"): 2 micro-batches do not divide the length of 3 that "
		"carries the batch [batch-parts]\n"},
	{"batch-parts-2", "(operator \"halves\"): the samples of a micro-batch are in no one dimension "
		"of the result [batch-parts]\n"},
	{"batch-mixed-4", "(operator \"bn\"): samples of the batch meet in a statistic; micro-batches "
		"would change the result [batch-mixed]\n"},
	{"batch-mixed-5", "(operator \"conv\"): the batch is in a dimension that stays whole"},
	{"operator-attr-16", "attribute pad has 2 at 0; 0 without pad_mode \"pad\" is expected"},
	{"operator-shape-8", "dimension 2 of operand 0 is 8, 8 with its padding; at least the "
		"window, 9, is expected (\"x\")"},
	{"batch-scale-3", "the batch of 4 cannot be changed to 3"},
	{"operator-attr.refused-group-size",
		"attribute group_size is 2: it restricts the statistics to a part of the devices, "
		"which is not planned with; 0 is allowed"},
	{"operator-attr.refused-mode",
		"attribute mode is 0: it asks for another function than the convolution"},
	{"operator-attr.refused-manual-split",
		"attribute manual_split is set: it cuts a table in unequal parts, which is not "
		"planned with ["},
	{"operator-attr.refused-skip-redistribution",
		"is true: each device would take from its own part alone, which is not planned "
		"with; false is allowed"},
	{"operator-attr.refused-ring-attention", "attribute enable_ring_attention is true"},
	{"operator-attr.refused-flash-sp", "attribute enable_flash_sp is true"},
	{"operator-attr.refused-ceil-mode", "attribute ceil_mode is true"},
	{"operator-attr.refused-max-norm", "attribute max_norm is 1.5: the table"},
	{"attr-type-4", "attribute multiples is given twice"},
	{"attr-type-5", "an integer, an array of integers or two of one length"},
	{"attr-unknown-2", "attribute \"dims\" is unknown"},
	{"operator-attr.sliceext-nothing", "leave nothing of dimension 1 of length 6"},
	{"operator-attr.padv3-odd", "with 2 dimensions an even number from 2 to 4 is allowed"},
	{"operator-attr.padv3-nothing-left",
		"for dimension 1 of length 6; at least one element must be left"},
	{"operator-attr.repeatinterleave-count", "has 2 values; 1 or 4 are expected"},
	{"operator-attr.tracev2-one-axis", "both name dimension 1"},
	{"operator-attr.fftshift-dim", "attribute dim is 2"},
	{"operator-outputs.repeatinterleavetensor-undeclared", "it must be declared"},
	{"operator-outputs.linspace-undeclared", "result 0 do not follow from the operands"},
	{"operator-rank.tril-vector", "needs at least 2 dimensions there (\"a\")"},
	{"operator-rank.assign-broadcast", "equal ranks are expected (\"b\")"},
	{"operator-shape.inplacecopy-length",
		"dimension 0 of operand 1 is 4; 1 or 8 is expected (\"b\")"},
	{"operator-shape.checkvalid-boxes", "dimension 1 of operand 0 is 5; 4 is expected"},
	{"operator-dtype.polar-types", "operand 1 is float64; float32 is expected (\"b\")"},
	{"operator-dtype.populationcount-float", "an integer type is expected"},
};

START_LOOP_TEST(messages_say_what_is_wrong, AP_COUNT(texts))
{
	const struct ap_graph *g;

	load_file(texts[_i].file, &g);
	ck_assert_msg(strstr(messages(), texts[_i].words), "%s", messages());
}
END_TEST
