/* SPDX-License-Identifier: Apache-2.0 */
/* tests/bad/graph: every check has a file NAME.json (and NAME-2.json, NAME.variant.json ..) that
 * trips just it. */
#include <dirent.h>
#include <stdio.h>
#include <string.h>

#include "base/arena.h"
#include "base/diag.h"
#include "base/file.h"
#include "base/vec.h"
#include "graph/graph.h"
#include "graph_fixture.h"
#include "harness.h"

#define DIR_BAD AP_SOURCE_ROOT "/tests/bad/graph/"

static const struct bad {
	const char *file; /* without .json */
	enum ap_status status;
	const char *pointer; /* of the first finding; "" the document */
} files[] = {
	{"attr-type", AP_MEANING, "/operators/0/attrs/transpose_b"},
	{"attr-type-2", AP_MEANING, "/operators/1/attrs/axis"},
	{"attr-type-3", AP_MEANING, "/operators/0/attrs/transpose_b"},
	{"attr-unknown", AP_OK, "/operators/0/attrs/transposed_b"},
	{"batch-dim", AP_MEANING, "/inputs/0/batch_dim"},
	{"batch-dim-2", AP_MEANING, "/inputs/1/batch_dim"},
	{"batch-mixed", AP_OK, "/operators/1"},
	{"batch-mixed-2", AP_OK, "/operators/1"},
	{"batch-mixed-3", AP_OK, "/operators/1"},
	{"batch-mixed-4", AP_OK, "/operators/1"},
	{"batch-mixed-5", AP_OK, "/operators/1"},
	{"batch-mixed-6", AP_OK, "/operators/3"},
	{"batch-parts", AP_USAGE, "/operators/1"},
	{"batch-parts-2", AP_USAGE, "/operators/1"},
	{"batch-scale", AP_USAGE, ""},
	{"batch-scale-2", AP_USAGE, "/operators/1"},
	{"batch-scale-3", AP_USAGE, "/operators/1"},
	{"cell-known", AP_MEANING, "/cells/1/name"},
	{"cell-known.forgotten", AP_MEANING, "/cells/0/name"},
	{"cell-known.not-at-a-dot", AP_MEANING, "/cells/0/name"},
	{"cell-unique", AP_MEANING, "/cells/2/name"},
	{"dtype-known", AP_MEANING, "/inputs/0/dtype"},
	{"dtype-known-2", AP_MEANING, "/operators/0/outputs/0/dtype"},
	{"dtype-known-3", AP_MEANING, "/parameters/0/read_as"},
	{"edge-cycle", AP_MEANING, "/operators/1"},
	{"edge-cycle-2", AP_MEANING, "/operators/1"},
	{"edge-cycle-3", AP_MEANING, "/operators/2"},
	{"edge-known", AP_MEANING, "/operators/0/inputs/1"},
	{"graph-empty", AP_MEANING, "/operators"},
	{"graph-size", AP_MEANING, "/inputs/0"},
	{"instance-path", AP_MEANING, "/operators/3/instance"},
	{"instance-path-2", AP_MEANING, "/operators/3/instance"},
	{"instance-path-3", AP_MEANING, "/operators/3/instance"},
	{"instance-path-4", AP_MEANING, "/operators/3/instance"},
	{"instance-shared", AP_OK, "/operators/3"},
	{"instance-shared-2", AP_OK, "/operators/3"},
	{"key-missing", AP_MEANING, ""},
	{"key-missing-2", AP_MEANING, "/operators/0"},
	{"key-missing-3", AP_MEANING, "/inputs/0"},
	{"key-missing-4", AP_MEANING, "/operators/0/outputs/0"},
	{"key-missing-5", AP_MEANING, ""},
	{"key-missing-6", AP_MEANING, "/operators/0/time_s"},
	{"key-missing-7", AP_MEANING, ""},
	{"key-missing-8", AP_MEANING, "/operators/0"},
	{"key-missing.cell-name", AP_MEANING, "/cells/0"},
	{"key-range", AP_MEANING, "/inputs/0/batch_dim"},
	{"key-range-2", AP_MEANING, "/operators/0/stage"},
	{"key-range-3", AP_MEANING, "/operators/0/time_s/share"},
	{"key-range-4", AP_MEANING, "/inputs/0/shape/0"},
	{"key-range.cell-stage", AP_MEANING, "/cells/0/stage"},
	{"key-range.segment", AP_MEANING, "/operators/0/segment"},
	{"key-type", AP_MEANING, ""},
	{"key-type-2", AP_MEANING, ""},
	{"key-type-3", AP_MEANING, ""},
	{"key-type-4", AP_MEANING, "/inputs/0/shape/0"},
	{"key-type-5", AP_MEANING, "/inputs/0/shape/0"},
	{"key-type-6", AP_MEANING, "/inputs/0/shape/0"},
	{"key-type-7", AP_MEANING, "/operators/0/inputs/1"},
	{"key-type-8", AP_MEANING, "/operators/0/in_strategy/0"},
	{"key-type-9", AP_MEANING, "/outputs/0"},
	{"key-type-10", AP_MEANING, "/operators/1"},
	{"key-type-11", AP_MEANING, "/operators/0/recompute"},
	{"key-type.cell", AP_MEANING, "/cells/0"},
	{"key-type.cell-recompute", AP_MEANING, "/cells/0/recompute"},
	{"key-unknown", AP_OK, "/operators/0/input"},
	{"key-unknown-2", AP_OK, "/optimiser"},
	{"key-unknown-3", AP_OK, "/parameters/0/trainible"},
	{"key-unknown.cell-recompute", AP_OK, "/cells/0/recompute/mp_com_recompute"},
	{"loss", AP_OK, "/outputs/0"},
	{"name-empty", AP_MEANING, "/inputs/1/name"},
	{"name-empty-2", AP_MEANING, "/operators/0/name"},
	{"name-empty.cell", AP_MEANING, "/cells/0/name"},
	{"operator-assumed", AP_OK, "/operators/0/type"},
	{"operator-attr", AP_MEANING, "/operators/0/attrs"},
	{"operator-attr-2", AP_MEANING, "/operators/0/attrs"},
	{"operator-attr-3", AP_MEANING, "/operators/0/attrs"},
	{"operator-attr-4", AP_MEANING, "/operators/0/attrs"},
	{"operator-attr-5", AP_MEANING, "/operators/0/attrs"},
	{"operator-attr-6", AP_MEANING, "/operators/0/attrs"},
	{"operator-attr-7", AP_MEANING, "/operators/0/attrs"},
	{"operator-attr-8", AP_MEANING, "/operators/0/attrs"},
	{"operator-attr-9", AP_MEANING, "/operators/0/attrs"},
	{"operator-attr-10", AP_MEANING, "/operators/0/attrs"},
	{"operator-attr-11", AP_MEANING, "/operators/0/attrs"},
	{"operator-attr-12", AP_MEANING, "/operators/0/attrs"},
	{"operator-attr-13", AP_MEANING, "/operators/0/attrs"},
	{"operator-attr-14", AP_MEANING, "/operators/0"},
	{"operator-attr-15", AP_MEANING, "/operators/0"},
	{"operator-attr-16", AP_MEANING, "/operators/0/attrs"},
	{"operator-attr-17", AP_MEANING, "/operators/1/attrs"},
	{"operator-dtype", AP_MEANING, "/operators/0/inputs/1"},
	{"operator-dtype-2", AP_MEANING, "/operators/0/inputs/1"},
	{"operator-dtype-3", AP_MEANING, "/operators/0/inputs/0"},
	{"operator-dtype-4", AP_MEANING, "/operators/0/inputs/0"},
	{"operator-dtype-5", AP_MEANING, "/operators/0/inputs/1"},
	{"operator-inputs", AP_MEANING, "/operators/0"},
	{"operator-inputs-2", AP_MEANING, "/operators/0"},
	{"operator-inputs-3", AP_MEANING, "/operators/0"},
	{"operator-known", AP_MEANING, "/operators/0/type"},
	{"operator-known-2", AP_MEANING, "/operators/0/type"},
	{"operator-known-3", AP_MEANING, "/operators/0/type"},
	{"operator-known-4", AP_MEANING, "/operators/0/type"},
	{"operator-outputs", AP_MEANING, "/operators/0"},
	{"operator-outputs-2", AP_MEANING, "/operators/1/outputs"},
	{"operator-rank", AP_MEANING, "/operators/0/inputs/0"},
	{"operator-rank-2", AP_MEANING, "/operators/0/inputs/0"},
	{"operator-rank-3", AP_MEANING, "/operators/0/inputs/1"},
	{"operator-rank-4", AP_MEANING, "/operators/0"},
	{"operator-rank-5", AP_MEANING, "/operators/0/inputs/0"},
	{"operator-shape", AP_MEANING, "/operators/0/inputs/1"},
	{"operator-shape-2", AP_MEANING, "/operators/0/inputs/1"},
	{"operator-shape-3", AP_MEANING, "/operators/0/inputs/0"},
	{"operator-shape-4", AP_MEANING, "/operators/0/inputs/0"},
	{"operator-shape-5", AP_MEANING, "/operators/0/inputs/1"},
	{"operator-shape-6", AP_MEANING, "/operators/0/inputs/1"},
	{"operator-shape-7", AP_MEANING, "/operators/0/inputs/1"},
	{"operator-shape-8", AP_MEANING, "/operators/0/inputs/0"},
	{"operator-unique", AP_MEANING, "/operators/1/name"},
	{"operator-unused", AP_OK, "/operators/2"},
	{"output-dtype", AP_MEANING, "/operators/0/outputs/0/dtype"},
	{"output-dtype-2", AP_MEANING, "/operators/0/outputs/0/dtype"},
	{"output-known", AP_MEANING, "/outputs/0"},
	{"output-known-2", AP_MEANING, "/outputs"},
	{"output-shape", AP_MEANING, "/operators/0/outputs/0/shape"},
	{"output-shape-2", AP_MEANING, "/operators/1/outputs/0/shape"},
	{"param-flag", AP_MEANING, "/operators/0/outputs/0/trainable"},
	{"param-flag-2", AP_MEANING, "/inputs/0/comm_fusion"},
	{"param-flag-3", AP_MEANING, "/inputs/0/read_as"},
	{"param-read", AP_MEANING, "/parameters/0/read_as"},
	{"param-read-2", AP_MEANING, "/parameters/0/read_as"},
	{"param-read-3", AP_MEANING, "/parameters/0/read_as"},
	{"pin-length", AP_MEANING, "/operators/0/in_strategy"},
	{"pin-length-2", AP_MEANING, "/operators/0/in_strategy/1"},
	{"pin-length-3", AP_MEANING, "/operators/0/in_strategy"},
	{"pin-length-4", AP_MEANING, "/operators/0/in_strategy"},
	{"pin-length-5", AP_MEANING, "/operators/0/out_strategy"},
	{"pin-length-6", AP_MEANING, "/operators/0/out_strategy/0"},
	{"pin-out", AP_MEANING, "/operators/0/out_strategy"},
	{"pin-out-2", AP_MEANING, "/operators/0/out_strategy"},
	{"pin-out-3", AP_MEANING, "/operators/1/out_strategy"},
	{"pin-value", AP_MEANING, "/operators/0/in_strategy/0/0"},
	{"pin-value-2", AP_MEANING, "/operators/0/in_strategy/0/0"},
	{"pin-value-3", AP_MEANING, "/operators/0/out_strategy/0/0"},
	{"pin-value-4", AP_MEANING, "/operators/0/out_strategy/0/0"},
	{"pin-view", AP_OK, "/operators/1/in_strategy"},
	{"pin-view-2", AP_OK, "/operators/0/in_strategy"},
	{"schema", AP_MEANING, "/schema"},
	{"schema-2", AP_MEANING, ""},
	{"schema-3", AP_MEANING, ""},
	{"shape-extent", AP_MEANING, "/inputs/0/shape/1"},
	{"shape-extent-2", AP_MEANING, "/inputs/0/shape/1"},
	{"shape-extent-3", AP_MEANING, "/inputs/0/shape/1"},
	{"shape-extent-4", AP_MEANING, "/inputs/0/shape/1"},
	{"shape-extent-5", AP_MEANING, "/inputs/0/shape/1"},
	{"shape-extent-6", AP_MEANING, "/inputs/0/shape/1"},
	{"shape-extent-7", AP_MEANING, "/inputs/0/shape/1"},
	{"shape-rank", AP_MEANING, "/inputs/0/shape"},
	{"shape-rank-2", AP_MEANING, "/operators/0/outputs/0/shape"},
	{"shape-size", AP_MEANING, "/inputs/0/shape"},
	{"shape-size-2", AP_MEANING, "/operators/0"},
	{"shape-size-3", AP_MEANING, "/inputs/0/shape"},
	{"tensor-unique", AP_MEANING, "/parameters/1/name"},
	{"tensor-unique-2", AP_MEANING, "/operators/1/outputs/0/name"},
	{"tensor-unused", AP_OK, "/parameters/1"},
	{"operator-attr.argmaxwithvalue-axes", AP_MEANING, "/operators/0/attrs"},
	{"operator-attr.broadcastto-new", AP_MEANING, "/operators/0/attrs"},
	{"operator-attr.broadcastto-rank", AP_MEANING, "/operators/0/attrs"},
	{"operator-attr.concat-axis", AP_MEANING, "/operators/0/attrs"},
	{"operator-attr.concat-two-axes", AP_MEANING, "/operators/0/attrs"},
	{"operator-attr.cumsum-no-axis", AP_MEANING, "/operators/0"},
	{"operator-attr.maxdim-no-dim", AP_MEANING, "/operators/0"},
	{"operator-attr.sortext-dim", AP_MEANING, "/operators/0/attrs"},
	{"operator-attr.argmax-type", AP_MEANING, "/operators/0/attrs"},
	{"operator-attr.resize-one", AP_MEANING, "/operators/0/attrs"},
	{"operator-attr.resize-none", AP_MEANING, "/operators/0/attrs"},
	{"operator-outputs.resize-unsaid", AP_MEANING, "/operators/0"},
	{"operator-rank.resize-three", AP_MEANING, "/operators/0/inputs/0"},
	{"operator-shape.quantv2-scale", AP_MEANING, "/operators/0/inputs/1"},
	{"operator-shape.fakequant-channel", AP_MEANING, "/operators/0/inputs/1"},
	{"operator-attr.fakequant-axis", AP_MEANING, "/operators/0/attrs"},
	{"operator-inputs.dequant-scale", AP_MEANING, "/operators/0"},
	{"operator-dtype.dynamicquant-int", AP_MEANING, "/operators/0/inputs/0"},
	{"operator-shape.minmax-channel", AP_MEANING, "/operators/0/inputs/1"},
	{"operator-rank.minmax-matrix", AP_MEANING, "/operators/0/inputs/2"},
	{"operator-dtype.quant-int", AP_MEANING, "/operators/0/inputs/0"},
	{"operator-dtype.read-as", AP_MEANING, "/operators/0/inputs/1"},
	{"operator-dtype.antiquant-float", AP_MEANING, "/operators/0/inputs/0"},
	{"operator-attr.cropandresize-size", AP_MEANING, "/operators/0/attrs"},
	{"operator-attr.gather-batch-dims", AP_MEANING, "/operators/0/attrs"},
	{"operator-attr.indexselect-axis", AP_MEANING, "/operators/0/attrs"},
	{"operator-attr.kldivloss-reduction", AP_MEANING, "/operators/0/attrs"},
	{"operator-attr.onehotext-classes", AP_MEANING, "/operators/0/attrs"},
	{"operator-attr.topkext-k", AP_MEANING, "/operators/0/attrs"},
	{"operator-attr.topkrouter-experts", AP_MEANING, "/operators/0/attrs"},
	{"operator-outputs.moeinitrouting", AP_MEANING, "/operators/0"},
	{"operator-rank.index-many", AP_MEANING, "/operators/0/inputs/0"},
	{"operator-rank.kldivloss-shape", AP_MEANING, "/operators/0/inputs/1"},
	{"operator-shape.flashattentionscore-packed-heads", AP_MEANING, "/operators/0/inputs/0"},
	{"operator-shape.gather-batch", AP_MEANING, "/operators/0/inputs/1"},
	{"operator-shape.increflashattention-queries", AP_MEANING, "/operators/0/inputs/0"},
	{"operator-shape.pagedattention-lengths", AP_MEANING, "/operators/0/inputs/4"},
	{"operator-shape.scatteradd-updates", AP_MEANING, "/operators/0/inputs/2"},
	{"operator-shape.tensorscatteradd-points", AP_MEANING, "/operators/0/inputs/1"},
	{"operator-attr.fft-dim", AP_MEANING, "/operators/0/attrs"},
	{"operator-attr.fft-dims", AP_MEANING, "/operators/0/attrs"},
	{"operator-attr.fft2-twice", AP_MEANING, "/operators/0/attrs"},
	{"operator-attr.fftn-lengths", AP_MEANING, "/operators/0/attrs"},
	{"operator-attr.dct-length", AP_MEANING, "/operators/0/attrs"},
	{"operator-shape.irfft-one", AP_MEANING, "/operators/0/inputs/0"},
	{"operator-dtype.rfft-complex", AP_MEANING, "/operators/0/inputs/0"},
	{"operator-rank.fft2-vector", AP_MEANING, "/operators/0/inputs/0"},
	{"operator-attr.expanddims-axis", AP_MEANING, "/operators/0/attrs"},
	{"operator-attr.gatherd-no-dim", AP_MEANING, "/operators/0"},
	{"operator-attr.repeatelements-none", AP_MEANING, "/operators/0/attrs"},
	{"operator-attr.slice-short", AP_MEANING, "/operators/0/attrs"},
	{"operator-attr.slice-size", AP_MEANING, "/operators/0/attrs"},
	{"operator-attr.split-none", AP_MEANING, "/operators/0/attrs"},
	{"operator-attr.splittensor-size", AP_MEANING, "/operators/0/attrs"},
	{"operator-attr.splitv-count", AP_MEANING, "/operators/0/attrs"},
	{"operator-attr.stack-axis", AP_MEANING, "/operators/0/attrs"},
	{"operator-attr.strided-ellipses", AP_MEANING, "/operators/0/attrs"},
	{"operator-attr.strided-index", AP_MEANING, "/operators/0/attrs"},
	{"operator-attr.strided-no-end", AP_MEANING, "/operators/0/attrs"},
	{"operator-attr.strided-stride", AP_MEANING, "/operators/0/attrs"},
	{"operator-attr.tile-none", AP_MEANING, "/operators/0/attrs"},
	{"operator-attr.tile-short", AP_MEANING, "/operators/0/attrs"},
	{"operator-attr.topk-too-many", AP_MEANING, "/operators/0/attrs"},
	{"operator-dtype.concat-types", AP_MEANING, "/operators/0/inputs/1"},
	{"operator-dtype.select-condition", AP_MEANING, "/operators/0/inputs/0"},
	{"operator-inputs.concat-left-out", AP_MEANING, "/operators/0"},
	{"operator-inputs.concat-none", AP_MEANING, "/operators/0"},
	{"operator-outputs.split-too-few", AP_MEANING, "/operators/0"},
	{"operator-outputs.topk-third", AP_MEANING, "/operators/0"},
	{"operator-rank.concat-ranks", AP_MEANING, "/operators/0/inputs/1"},
	{"operator-rank.expanddims-rank", AP_MEANING, "/operators/0"},
	{"operator-rank.maskedfill-value", AP_MEANING, "/operators/0/inputs/2"},
	{"operator-shape.addn-lengths", AP_MEANING, "/operators/0/inputs/1"},
	{"operator-shape.broadcastto-length", AP_MEANING, "/operators/0/inputs/0"},
	{"operator-shape.concat-lengths", AP_MEANING, "/operators/0/inputs/1"},
	{"operator-shape.gatherd-lengths", AP_MEANING, "/operators/0/inputs/1"},
	{"operator-shape.gathernd-points", AP_MEANING, "/operators/0/inputs/1"},
	{"operator-shape.segments-lengths", AP_MEANING, "/operators/0/inputs/1"},
	{"operator-shape.split-uneven", AP_MEANING, "/operators/0/inputs/0"},
	{"operator-shape.splitv-sum", AP_MEANING, "/operators/0/inputs/0"},
	{"operator-shape.squeeze-length", AP_MEANING, "/operators/0/inputs/0"},
	{"operator-shape.stack-lengths", AP_MEANING, "/operators/0/inputs/1"},
	{"operator-shape.strided-empty", AP_MEANING, "/operators/0/inputs/0"},
	{"operator-attr.refused-group-size", AP_MEANING, "/operators/0/attrs"},
	{"operator-attr.refused-mode", AP_MEANING, "/operators/0/attrs"},
	{"operator-attr.refused-manual-split", AP_MEANING, "/operators/0/attrs"},
	{"operator-attr.refused-skip-redistribution", AP_MEANING, "/operators/0/attrs"},
	{"operator-attr.refused-ring-attention", AP_MEANING, "/operators/0/attrs"},
	{"operator-attr.refused-flash-sp", AP_MEANING, "/operators/0/attrs"},
	{"operator-attr.refused-ceil-mode", AP_MEANING, "/operators/0/attrs"},
	{"operator-attr.refused-max-norm", AP_MEANING, "/operators/0/attrs"},
	{"attr-type-4", AP_MEANING, "/operators/0/attrs/dims"},
	{"attr-type-5", AP_MEANING, "/operators/0/attrs/axes"},
	{"attr-unknown-2", AP_OK, "/operators/0/attrs/dims"},
	{"operator-attr.sliceext-nothing", AP_MEANING, "/operators/0/attrs"},
	{"operator-attr.padv3-odd", AP_MEANING, "/operators/0/attrs"},
	{"operator-attr.padv3-nothing-left", AP_MEANING, "/operators/0/attrs"},
	{"operator-attr.repeatinterleave-count", AP_MEANING, "/operators/0/attrs"},
	{"operator-attr.tracev2-one-axis", AP_MEANING, "/operators/0/attrs"},
	{"operator-attr.fftshift-dim", AP_MEANING, "/operators/0/attrs"},
	{"operator-outputs.repeatinterleavetensor-undeclared", AP_MEANING, "/operators/0"},
	{"operator-outputs.linspace-undeclared", AP_MEANING, "/operators/0"},
	{"operator-rank.tril-vector", AP_MEANING, "/operators/0/inputs/0"},
	{"operator-rank.assign-broadcast", AP_MEANING, "/operators/0/inputs/1"},
	{"operator-shape.inplacecopy-length", AP_MEANING, "/operators/0/inputs/1"},
	{"operator-shape.checkvalid-boxes", AP_MEANING, "/operators/0/inputs/0"},
	{"operator-dtype.polar-types", AP_MEANING, "/operators/0/inputs/1"},
	{"operator-dtype.populationcount-float", AP_MEANING, "/operators/0/inputs/0"},
};

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

START_LOOP_TEST(exactly_this_check_speaks, AP_COUNT(files))
{
	const struct bad *f = &files[_i];
	const struct ap_graph *g;
	enum ap_level level;
	const char *check, *text;
	char name[64];

	check_name(f->file, name, sizeof name);
	ck_assert_int_eq(load_file(f->file, &g), f->status);
	ck_assert_ptr_nonnull(ap_diag_text(ctx.diag, 0, &level, &check));
	for (size_t i = 0; (text = ap_diag_text(ctx.diag, i, &level, &check)); i++)
		ck_assert_msg(check && strcmp(check, name) == 0, "%s: %s", f->file, text);
	ck_assert_str_eq(first_pointer(), f->pointer);
	ck_assert_int_eq(f->status == AP_OK, ap_diag_count(ctx.diag, AP_ERROR) == 0);
}
END_TEST

START_LOOP_TEST(warnings_are_errors_of_a_strict_sink, AP_COUNT(files))
{
	const struct bad *f = &files[_i];
	const struct ap_graph *g;
	bool warns;

	if (f->status != AP_OK)
		return;
	load_file(f->file, &g);
	warns = ap_diag_count(ctx.diag, AP_WARNING) > 0;
	ctx.diag = ap_diag_create(ctx.arena, true);
	ck_assert_int_eq(load_file(f->file, &g), warns ? AP_MEANING : AP_OK);
}
END_TEST

static bool listed(const char *file)
{
	for (size_t i = 0; i < AP_COUNT(files); i++)
		if (strcmp(files[i].file, file) == 0)
			return true;
	return false;
}

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

START_TEST(every_file_is_listed)
{
	DIR *dir = opendir(DIR_BAD);
	struct dirent *e;
	size_t n = 0;

	ck_assert_ptr_nonnull(dir);
	while ((e = readdir(dir))) {
		char name[256];
		const char *dot = strstr(e->d_name, ".json");

		if (!dot)
			continue;
		snprintf(name, sizeof name, "%.*s", (int)(dot - e->d_name), e->d_name);
		if (!is_of_graphs(name))
			continue;
		ck_assert_msg(listed(name), "%s is not in the table", e->d_name);
		n++;
	}
	closedir(dir);
	ck_assert_uint_eq(n, AP_COUNT(files));
}
END_TEST

START_TEST(every_check_has_a_file)
{
	const char *name, *text;

	for (size_t i = 0; (name = ap_graph_check_at(i, &text)); i++) {
		ck_assert_msg(listed(name), "no bad file for %s", name);
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
