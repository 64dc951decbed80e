/* SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>

#include "base/file.h"
#include "base/json.h"
#include "base/sha256.h"
#include "base/str.h"
#include "base/vec.h"
#include "hw/builtin.h"
#include "hw/constant.h"
#include "hw_test.h"

TEST_FIXTURE(setup, teardown)

/* Those that somebody has looked up by hand; what is asked of all is below. */
START_TEST(built_in_chips_hold_the_published_figures)
{
	static const struct {
		const char *name;
		double fp16, bf16, fp32, memory_Bps, inner_Bps, outer_Bps; /* TF and GB/s */
		double gb; /* of memory */
		int nlevel;
		const char *hccl;
	} rows[] = {
		{"ascend910a", 256, 0, 128, 1200, 30, 12.5, 34.359738368, 3, "910"},
		{"ascend910b1", 376, 353.9, 99.5, 1759.2186044416, 28, 25, 68.719476736, 2, "910b"},
		{"ascend910b3", 313, 294.9, 83, 1759.2186044416, 28, 25, 68.719476736, 2, "910b"},
		{"ascend910b4-1", 280, 245.8, 75, 1759.2186044416, 28, 25, 68.719476736, 2, "910b"},
		{"ascend910b4-pcie", 280, 245.8, 75, 879.6093022208, 64, 25, 34.359738368, 2, "910b"},
		{"ascend910c", 376, 353.9, 99.5, 1759.2186044416, 224, 24.5, 68.719476736, 4, "910_93"},
		{"ascend910c-560", 280, 245.8, 75, 1759.2186044416, 224, 24.5, 68.719476736, 4, "910_93"},
		{"v100-16", 125, 0, 15.7, 900, 25, 6.25, 17.179869184, 2, ""},
		{"v100-32", 125, 0, 15.7, 900, 25, 6.25, 34.359738368, 2, ""},
		{"a100-40", 312, 312, 156, 1555, 300, 25, 42.94967296, 2, ""},
		{"a100-80", 312, 312, 156, 2039, 300, 25, 85.899345920, 2, ""},
		{"a800-80", 312, 312, 156, 2039, 200, 25, 85.899345920, 2, ""},
		{"h100-80", 989, 989, 494.5, 3350, 450, 50, 85.899345920, 2, ""},
		{"h800-80", 989, 989, 494.5, 3350, 200, 50, 85.899345920, 2, ""},
		{"h200-141", 989, 989, 494.5, 4800, 450, 50, 141, 2, ""},
		{"b200-180", 2250, 2250, 1125, 8000, 900, 50, 180, 2, ""},
		{"gb200-186", 2500, 2500, 1250, 8000, 900, 50, 186, 2, ""},
	};

	for (size_t i = 0; i < AP_COUNT(rows); i++) {
		const struct ap_chip *c = get_chip(rows[i].name);

		ck_assert_str_eq(c->name, rows[i].name);
		ck_assert_double_eq(c->peak_flops[AP_UNIT_CUBE][AP_FLOAT16], rows[i].fp16 * 1e12);
		ck_assert_double_eq(c->peak_flops[AP_UNIT_CUBE][AP_BFLOAT16], rows[i].bf16 * 1e12);
		ck_assert_double_eq(c->peak_flops[AP_UNIT_CUBE][AP_FLOAT32], rows[i].fp32 * 1e12);
		ck_assert_double_eq_tol(c->memory_Bps, rows[i].memory_Bps * 1e9, 1);
		ck_assert_double_eq_tol((double)c->memory_bytes, rows[i].gb * 1e9, 1);
		ck_assert_int_eq(c->nlevel, rows[i].nlevel);
		ck_assert_double_eq(c->level[0].bandwidth_Bps, rows[i].inner_Bps * 1e9);
		ck_assert_double_eq(c->level[c->nlevel - 1].bandwidth_Bps, rows[i].outer_Bps * 1e9);
		ck_assert_str_eq(c->hccl, rows[i].hccl);
	}
}
END_TEST

START_TEST(every_chip_is_one_that_can_be)
{
	const char *name;

	for (size_t i = 0; (name = ap_chip_at(i, NULL)); i++) {
		const struct ap_chip *c = get_chip(name);
		const double *cube = c->peak_flops[AP_UNIT_CUBE], *vector = c->peak_flops[AP_UNIT_VECTOR];

		ck_assert_str_eq(c->name, name);
		ck_assert_int_lt(c->usable_bytes, c->memory_bytes);
		ck_assert_int_gt(c->usable_bytes, c->memory_bytes / 10 * 9);
		ck_assert_double_ge(cube[AP_FLOAT16], cube[AP_FLOAT32]);
		ck_assert_double_ge(cube[AP_FLOAT32], vector[AP_FLOAT32]);
		ck_assert_int_ge(c->nlevel, 2);
		for (int l = 0; l < c->nlevel; l++)
			ck_assert_double_gt(c->memory_Bps, c->level[l].bandwidth_Bps);
		ck_assert_int_eq(c->level[c->nlevel - 1].kind, AP_LINK_NIC);
		ck_assert_msg(!*c->hccl || strstr("910 910b 910_93", c->hccl), "%s", c->hccl);
	}
	ck_assert_ptr_nonnull(ap_chip_at(0, NULL));
}
END_TEST

/* What people and rank tables call them. */
START_TEST(names_that_are_typed)
{
	static const char *const rows[][2] = {
		{"910", "ascend910a"}, {"910A", "ascend910a"}, {"Ascend910", "ascend910a"},
		{"910B1", "ascend910b1"}, {"910b2", "ascend910b1"}, {"Ascend910B2C", "ascend910b1"},
		{"910B", "ascend910b3"}, {"910b3", "ascend910b3"}, {"Ascend910B", "ascend910b3"},
		{"Ascend910B4", "ascend910b4-pcie"}, {"910b4-1", "ascend910b4-1"},
		{"910C", "ascend910c"}, {"910_93", "ascend910c"}, {"V100", "v100-32"},
		{"A100", "a100-80"}, {"a800", "a800-80"}, {"H100", "h100-80"}, {"h800", "h800-80"},
		{"H200", "h200-141"}, {"B200", "b200-180"}, {"GB200", "gb200-186"},
		{"H100-SXM5-80GB", "h100-80"},
		{"H100-PCIe", "h100-pcie-80"}, {"H20", "h20-96"}, {"GB300", "gb300-288"}, {"L40S", "l40s-48"},
		{"A10", "a10-24"}, {"RTX4090", "rtx4090-24"}, {"4090", "rtx4090-24"}, {"MI250X", "mi250x-64"},
		{"MI300X", "mi300x-192"},
	};

	for (size_t i = 0; i < AP_COUNT(rows); i++) {
		const struct ap_chip *by_info = NULL;

		ck_assert_str_eq(get_chip(rows[i][0])->name, rows[i][1]);
		ck_assert_int_eq(ap_chip_by_info(&ctx, rows[i][0], &by_info), AP_OK);
		ck_assert_str_eq(by_info->name, rows[i][1]);
	}
}
END_TEST

START_TEST(no_name_means_two_chips)
{
	const char *each, *other;

	for (size_t i = 0; (each = ap_chip_at(i, NULL)); i++) {
		const struct ap_chip *chip = get_chip(each);

		ck_assert_str_eq(chip->name, each);
		for (int a = 0; a < chip->nalias; a++)
			ck_assert_str_eq(get_chip(chip->alias[a])->name, each);
		for (size_t k = 0; (other = ap_chip_at(k, NULL)); k++)
			for (int a = 0; a < chip->nalias; a++)
				ck_assert_str_ne(chip->alias[a], other);
	}
}
END_TEST

START_TEST(chips_are_found_by_name_and_alias)
{
	const struct ap_chip *c = NULL;

	ck_assert_str_eq(get_chip("ascend910b")->name, "ascend910b3");
	ck_assert_str_eq(get_chip("910B3")->name, "ascend910b3");
	ck_assert_int_eq(ap_chip_by_info(&ctx, "910", &c), AP_OK);
	ck_assert_str_eq(c->name, "ascend910a");
	ck_assert_int_eq(ap_chip_by_info(&ctx, "", &c), AP_OK);
	ck_assert_ptr_null(c);
	ck_assert_int_eq(said(AP_ERROR, NULL), 0);
}
END_TEST

START_TEST(an_unknown_chip_names_all_and_the_nearest)
{
	const struct ap_chip *c = NULL;
	const char *text;

	ck_assert_int_eq(ap_chip_get(&ctx, "ascend910d", &c), AP_USAGE);
	text = ap_diag_text(ctx.diag, 0, NULL, NULL);
	ck_assert_ptr_nonnull(strstr(text, "ascend910a, ascend910b1, ascend910b3"));
	ck_assert_ptr_nonnull(strstr(text, "did you mean \"ascend910"));
	ck_assert_int_eq(ap_chip_get(&ctx, "tpu", &c), AP_USAGE);
	ck_assert_ptr_null(strstr(ap_diag_text(ctx.diag, 1, NULL, NULL), "did you mean"));
}
END_TEST

/* Of a family the profile whose runs are of a year, the one of the fewest years if several are; else the nearest. */
START_TEST(software_of_a_year)
{
	static const struct {
		const char *asked, *name;
	} rows[] = {{"megatron@2021", "megatron-2021"}, {"megatron@2022", "megatron-2022"},
		{"megatron@2025", "megatron"}, {"megatron@2030", "megatron"}, {"megatron@2015", "megatron-2021"},
		{"mindspore@2021", "mindspore-1"}, {"mindspore@2024", "mindspore"},
		{"mindformers@2020", "mindspore"}};
	static const char *const bad[] = {"megatron@", "megatron@core", "megatron@21", "generic@2024", "mega@2022",
		"@2022"};
	const struct ap_software *s = NULL;

	for (size_t i = 0; i < AP_COUNT(rows); i++) {
		ck_assert_int_eq(ap_software_get(&ctx, rows[i].asked, &s), AP_OK);
		ck_assert_str_eq(s->name, rows[i].name);
	}
	for (size_t i = 0; i < AP_COUNT(bad); i++)
		ck_assert_int_eq(ap_software_get(&ctx, bad[i], &s), AP_USAGE);
}
END_TEST

START_TEST(software_profiles)
{
	const struct ap_software *s = NULL;

	ck_assert_int_eq(ap_software_get(&ctx, "mindspore", &s), AP_OK);
	ck_assert_str_eq(s->name, "mindspore");
	ck_assert_str_eq(s->file, "mindspore.json");
	ck_assert_int_eq(s->gradient_bytes, 4);
	ck_assert_int_eq(s->gradient_copy_bytes, 0);
	ck_assert_double_ge(s->overlap_slowdown, 1);
	ck_assert_int_eq(ap_software_get(&ctx, "generic", &s), AP_OK);
	ck_assert_int_eq(s->gradient_bytes, 4);
	ck_assert_int_eq(s->gradient_copy_bytes, 4);
	ck_assert_int_eq(s->master_bytes, 4);
	ck_assert_int_eq(s->gradient_sum, AP_SUM_UNKNOWN);
	ck_assert_int_eq(ap_software_get(&ctx, "megatron", &s), AP_OK);
	ck_assert_int_eq(s->gradient_sum, AP_SUM_FUSED);
	ck_assert(s->step_error > 1 && s->step_error < 20 && s->memory_error > 1 && s->memory_error < 20);
	ck_assert_int_eq(ap_software_get(&ctx, "mindspeed", &s), AP_OK);
	ck_assert_int_eq(s->gradient_sum, AP_SUM_APART);
	ck_assert(!(s->step_error > 0)); /* nobody has measured it */
	ck_assert_int_eq(ap_software_get(&ctx, "megatron-core", &s), AP_OK);
	ck_assert_str_eq(s->name, "megatron");
	ck_assert_int_eq(s->attention, AP_ATTENTION_FLASH_3);
	ck_assert_double_eq(s->product_slowdown, 1);
	ck_assert_double_eq(s->launch_s, 36e-6);
	ck_assert_int_eq(ap_software_get(&ctx, "mindspore-1", &s), AP_OK);
	ck_assert_int_eq(s->attention, AP_ATTENTION_UNKNOWN); /* small operators */
	ck_assert_int_eq(ap_software_get(&ctx, "mindspore-2", &s), AP_OK);
	ck_assert_str_eq(s->name, "mindspore");
	ck_assert_int_eq(ap_software_get(&ctx, "megatron-2022", &s), AP_OK);
	ck_assert_str_eq(s->name, "megatron-2022");
	ck_assert_int_eq(s->gradient_sum, AP_SUM_FUSED);
	ck_assert(s->launch_s > 10e-6 && s->launch_s < 100e-6);
	ck_assert(s->chains == (1u << AP_CHAIN_BIAS_ACTIVATION | 1u << AP_CHAIN_BIAS_DROPOUT_ADD |
		1u << AP_CHAIN_SOFTMAX | 1u << AP_CHAIN_STRIDES | 1u << AP_CHAIN_PRODUCTS));
	ck_assert_int_eq(ap_software_get(&ctx, "megatron-2021", &s), AP_OK);
	ck_assert_int_eq(s->gradient_sum, AP_SUM_APART);
	ck_assert_int_eq(ap_software_get(&ctx, "mindspor", &s), AP_USAGE);
	ck_assert_ptr_nonnull(
		strstr(ap_diag_text(ctx.diag, 0, NULL, NULL), "did you mean \"mindspore\""));
}
END_TEST

/* Rates and latencies of a chip under a software that is slower on it: all kernels by a half, collectives to
 * three quarters of the time. */
START_TEST(driven_by_a_software)
{
	const struct ap_chip *chip = get_chip("a100-80"), *c;
	struct ap_software s = {.kernel_slowdown = 1, .collective_slowdown = 1};

	ck_assert_ptr_eq(ap_chip_driven(ctx.arena, chip, &s), chip);
	s = (struct ap_software){.kernel_slowdown = 1.5, .collective_slowdown = 0.75};
	c = ap_chip_driven(ctx.arena, chip, &s);
	ck_assert_str_eq(c->name, chip->name);
	ck_assert_double_eq(c->matmul_efficiency, chip->matmul_efficiency / 1.5);
	ck_assert_double_eq(c->memory_efficiency, chip->memory_efficiency / 1.5);
	ck_assert_double_eq(c->attention[AP_ATTENTION_FLASH_2].backward,
		chip->attention[AP_ATTENTION_FLASH_2].backward / 1.5);
	ck_assert_double_eq(c->fixed_s[AP_UNIT_CUBE], chip->fixed_s[AP_UNIT_CUBE] * 1.5);
	ck_assert_double_eq(c->collective_fixed_s, chip->collective_fixed_s * 0.75);
	ck_assert_double_eq(c->memory_Bps, chip->memory_Bps);
	for (int l = 0; l < chip->nlevel; l++) {
		const struct ap_link_level *was = &chip->level[l], *is = &c->level[l];

		ck_assert_double_eq(is->latency_s, was->latency_s * 0.75);
		ck_assert_double_le(is->efficiency, 1);
		ck_assert_double_eq_tol(is->efficiency * is->bandwidth_Bps * 0.75 / (was->efficiency *
			was->bandwidth_Bps), 1, 1e-12);
	}
}
END_TEST

/* The newest kernel that a chip has and that is no newer than the software's, else its oldest. */
START_TEST(kernels_of_attention)
{
	const struct ap_chip *a100 = get_chip("a100-80"), *b200 = get_chip("b200-180"), *npu = get_chip("910b3");

	ck_assert_double_eq(ap_chip_attention(a100, AP_ATTENTION_FLASH_1).backward, 0.295);
	ck_assert_double_eq(ap_chip_attention(a100, AP_ATTENTION_FLASH_3).forward, 0.54);
	ck_assert_double_eq(ap_chip_attention(a100, AP_ATTENTION_UNKNOWN).forward, 0);
	ck_assert_double_eq(ap_chip_attention(b200, AP_ATTENTION_FLASH_1).forward, 0.74);
	ck_assert_double_eq(ap_chip_attention(b200, AP_ATTENTION_FLASH_1).half, 4000);
	ck_assert_double_eq(ap_chip_attention(a100, AP_ATTENTION_FLASH_1).half, 0);
	ck_assert_double_eq(ap_chip_attention(npu, AP_ATTENTION_FLASH_2).forward, 0.45);
	ck_assert_double_eq(ap_chip_attention(get_chip("v100"), AP_ATTENTION_FLASH_2).forward, 0);
}
END_TEST

/* Has sources an entry for path ("a.b.c") or for something that holds it? */
static bool has_source(const struct ap_jv *sources, const char *path)
{
	char part[256];

	snprintf(part, sizeof part, "%s", path);
	for (char *dot = part; dot; dot = strrchr(part, '.')) {
		if (dot != part)
			*dot = '\0';
		if (ap_jv_get(sources, part))
			return true;
	}
	return false;
}

/* What stands at a member or a named element, below path; path itself for other elements. */
static const char *path_of(const struct ap_jv *v, const char *path)
{
	const struct ap_jv *name = ap_jv_type(v) == AP_JOBJECT ? ap_jv_get(v, "name") : NULL;
	const char *key = ap_jv_key(v) ? ap_jv_key(v) : name ? ap_jv_str(name) : NULL;

	return key ? ap_arena_printf(ctx.arena, "%s%s%s", path, *path ? "." : "", key) : path;
}

/* Every number below v has a source. Returns how many of the sources are of something below v. */
static int walk(const struct ap_jv *v, const struct ap_jv *sources, const char *path)
{
	int used = 0;

	if (ap_jv_type(v) == AP_JNUMBER)
		ck_assert_msg(has_source(sources, path), "no source for %s", path);
	for (const struct ap_jv *m = ap_jv_first(v); m; m = ap_jv_next(m)) {
		const char *below = path_of(m, path);

		if (m == sources)
			continue;
		used += below != path && ap_jv_get(sources, below);
		used += walk(m, sources, below);
	}
	return used;
}

static void check_sources(const struct ap_builtin *b)
{
	struct ap_json *doc;
	const struct ap_jv *sources;

	ck_assert_int_eq(ap_json_parse(&ctx, b->name, b->text, strlen(b->text), 0, &doc), AP_OK);
	sources = ap_jv_get(ap_json_root(doc), "sources");
	ck_assert_ptr_nonnull(sources);
	/* and none speaks of what is not there */
	ck_assert_int_eq(walk(ap_json_root(doc), sources, ""), (int)ap_jv_count(sources));
	for (const struct ap_jv *s = ap_jv_first(sources); s; s = ap_jv_next(s))
		ck_assert_uint_ge(strlen(ap_jv_str(s)), 8);
}

static int fitted(const struct ap_profile_sources *sources, const struct ap_constant *c, size_t n)
{
	int fitted = 0;

	for (size_t i = 0; i < n; i++)
		fitted += ap_basis_of(ap_source_of(*sources, c[i].path)) == AP_BASIS_FITTED && c[i].to > 0;
	return fitted;
}

/* At most six numbers of a software profile are fitted to runs, and three of a chip: all others are published, or
 * assumed for a reason. */
START_TEST(few_numbers_are_fitted)
{
	for (const struct ap_builtin *b = ap_builtin_software; b->name; b++) {
		const struct ap_software *is;
		struct ap_constant *c;
		struct ap_software s;
		size_t n;

		ck_assert_int_eq(ap_software_get(&ctx, b->name, &is), AP_OK);
		s = *is;
		n = ap_software_constants(ctx.arena, &s, &c);
		ck_assert_uint_gt(n, 8);
		ck_assert_int_le(fitted(&s.sources, c, n), 6);
	}
	for (const struct ap_builtin *b = ap_builtin_chips; b->name; b++) {
		const struct ap_chip *is;
		struct ap_constant *c;
		struct ap_chip chip;
		size_t n;

		ck_assert_int_eq(ap_chip_get(&ctx, b->name, &is), AP_OK);
		chip = *is;
		n = ap_chip_constants(ctx.arena, &chip, &c);
		ck_assert_msg(fitted(&chip.sources, c, n) <= 3, "%s: %d are fitted", b->name,
			fitted(&chip.sources, c, n));
	}
}
END_TEST

START_TEST(every_number_has_its_source)
{
	for (const struct ap_builtin *b = ap_builtin_chips; b->name; b++)
		check_sources(b);
	for (const struct ap_builtin *b = ap_builtin_software; b->name; b++)
		check_sources(b);
}
END_TEST

/* The built-in text of a chip with the first `from` replaced by `to`. */
static const char *edited(const char *chip, const char *from, const char *to)
{
	const struct ap_builtin *b = ap_builtin_chips;
	const char *at;
	struct ap_str s;

	while (strcmp(b->name, chip) != 0)
		b++;
	at = strstr(b->text, from);
	ck_assert_ptr_nonnull(at);
	ap_str_init(&s, ctx.arena);
	ap_str_addn(&s, b->text, (size_t)(at - b->text));
	ap_str_add(&s, to);
	ap_str_add(&s, at + strlen(from));
	return s.s;
}

START_TEST(an_unknown_kernel_of_attention_is_refused)
{
	static const char text[] = "{\"schema\": \"autopar-software/1\", \"name\": \"x\", "
		"\"gradient_exposed\": 1, \"overlap_slowdown\": 1, \"attention\": \"flash-4\"}";
	struct ap_json *doc;
	struct ap_software s;

	ck_assert(ap_json_parse(&ctx, "x.json", text, sizeof text - 1, 0, &doc) == AP_OK);
	ck_assert_int_ne(ap_software_parse(&ctx, doc, &s), AP_OK);
	ck_assert_ptr_nonnull(strstr(ap_diag_text(ctx.diag, 0, NULL, NULL), "\"flash-3\" or \"npu\""));
}
END_TEST

START_TEST(an_unknown_way_to_sum_is_refused)
{
	static const char text[] = "{\"schema\": \"autopar-software/1\", \"name\": \"x\", "
		"\"gradient_exposed\": 1, \"overlap_slowdown\": 1, \"master_bytes\": 4, "
		"\"gradient_bytes\": 4, \"gradient_sum\": \"beside\"}";
	struct ap_json *doc;
	struct ap_software s;

	ck_assert(ap_json_parse(&ctx, "x.json", text, sizeof text - 1, 0, &doc) == AP_OK);
	ck_assert_int_ne(ap_software_parse(&ctx, doc, &s), AP_OK);
	ck_assert_ptr_nonnull(strstr(ap_diag_text(ctx.diag, 0, NULL, NULL), "\"fused\" or \"apart\""));
}
END_TEST

START_TEST(bad_profiles_are_refused_by_name)
{
	static const struct {
		const char *from, *to, *check;
	} rows[] = {
		{"autopar-chip/1", "autopar-graph/1", "profile-schema"},
		{"\"name\": \"ascend910b3\"", "\"name\": \"\"", "key-range"},
		{"\"name\": \"roce\"", "\"name\": \"\"", "key-range"},
		{"\"bfloat16\"", "\"brainfloat\"", "dtype-known"},
		{"\"float32\": 9e12", "\"int8\": 9e12", "key-missing"},
		{"313e12", "0", "key-range"},
		{"313e12", "\"313e12\"", "key-type"},
		{"\"matmul\": 0.96", "\"matmul\": 1.5", "key-range"},
		{"\"matmul\": 0.96", "\"matmul\": 0", "key-range"},
		{"\"npu\": {\"forward\": 0.45", "\"npu\": {\"forward\": 1.45", "key-range"},
		{"\"npu\": {\"forward\": 0.45", "\"npu\": {\"onward\": 0.45", "key-missing"},
		{"\"matmul\": 0.96", "\"matmul\": 0.96, \"matmul_float8\": 1.5", "key-range"},
		{"[64, 64, 260]", "[64, 64]", "key-range"},
		{"[64, 64, 260]", "[64, 64, 260, 1]", "key-range"},
		{"[64, 64, 260]", "[64, -1, 260]", "key-range"},
		{"[64, 64, 260]", "[64, \"64\", 260]", "key-range"},
		{"\"usable_bytes\": 62277025792", "\"usable_bytes\": 68719476737", "key-range"},
		{"\"mesh\"", "\"torus\"", "link-kind"},
		{"\"span\": 8, ", "", "level-nesting"},
		{"\"kind\": \"nic\"", "\"kind\": \"nic\", \"span\": 12", "level-nesting"},
		{"\"bandwidth_Bps\": 28e9, ", "", "key-missing"},
		{"\"within\": \"pod\"", "\"within\": \"rack\"", "link-within"},
		{"\"span\": 8,", "\"span\": 8, \"within\": \"pod\",", "link-within"},
		{"\"within\": \"pod\", ", "", "level-nesting"},
		{"\"within\": \"pod\", ", "\"within\": \"machine\", ", "level-nesting"},
		{"\"span\": 8,", "\"span\": 8, \"links\": [],", "key-range"},
		{"\"span\": 8,", "\"span\": 8, \"links\": [2, 1],", "key-range"},
		{"\"span\": 8,", "\"span\": 8, \"links\": [1, \"2\"],", "key-range"},
		{"\"span\": 8,", "\"span\": 8, \"links\": [0],", "key-range"},
		{"\"kind\": \"nic\"", "\"kind\": \"nic\", \"links\": [1]", "key-range"},
		{"\"hccl\": \"910b\"", "\"hccl\": true", "key-type"},
		{"\"hccl\": \"910b\"", "\"hccl\": \"950\"", "hccl-family"},
		{"\"devices_per_server\": 8,", "", "key-missing"},
		{"\"devices_per_server\": 8", "\"devices_per_server\": 0", "key-range"},
		{"\"devices_per_pod\": 768", "\"devices_per_pod\": 770", "key-range"},
		{"[\"ascend910b\", ", "[1, ", "key-type"},
	};

	for (size_t i = 0; i < AP_COUNT(rows); i++) {
		bool pod = strstr(rows[i].from, "pod") != NULL;
		const char *text = edited(
			pod ? "ascend910c" : "ascend910b3", rows[i].from, rows[i].to);
		int before = said(AP_ERROR, rows[i].check);
		struct ap_json *doc;
		struct ap_chip chip;

		ck_assert_int_eq(ap_json_parse(&ctx, "x.json", text, strlen(text), 0, &doc), AP_OK);
		ck_assert_msg(ap_chip_parse(&ctx, doc, &chip) == AP_MEANING, "row %zu", i);
		ck_assert_msg(said(AP_ERROR, rows[i].check) == before + 1,
			"row %zu: no [%s] but: %s", i, rows[i].check,
			ap_diag_text(ctx.diag, i, NULL, NULL));
	}
}
END_TEST

START_TEST(an_unknown_key_is_a_warning)
{
	const char *text = edited("ascend910a", "\"hccl\"", "\"hcl\"");
	struct ap_json *doc;
	struct ap_chip chip;

	ck_assert_int_eq(ap_json_parse(&ctx, "x.json", text, strlen(text), 0, &doc), AP_OK);
	ck_assert_int_eq(ap_chip_parse(&ctx, doc, &chip), AP_OK);
	ck_assert_int_eq(said(AP_WARNING, "key-unknown"), 1);
}
END_TEST

START_TEST(a_file_is_read_and_hashed)
{
	const char *text = edited("ascend910a", "12.5e9", "50e9");
	const struct ap_chip *c = NULL;
	char hex[65], path[] = "/tmp/autopar-chip-XXXXXX", *named;
	int fd = mkstemp(path);
	FILE *f;

	ck_assert_int_ge(fd, 0);
	named = ap_arena_printf(ctx.arena, "%s.json", path);
	ck_assert_int_eq(rename(path, named), 0);
	f = fopen(named, "wb");
	ck_assert_ptr_nonnull(f);
	fputs(text, f);
	fclose(f);
	ck_assert_int_eq(ap_chip_get(&ctx, named, &c), AP_OK);
	remove(named);
	ck_assert_double_eq(c->level[2].bandwidth_Bps, 50e9);
	ck_assert_str_eq(c->file, ap_file_base(named));
	ap_sha256_hex(text, strlen(text), hex);
	ck_assert_str_eq(c->sha256, hex);
	ck_assert_int_eq(ap_chip_get(&ctx, "/nonexistent/x.json", &c), AP_IO);
}
END_TEST

/* The product model that the profiles are fitted for. */
static double product_s(const struct ap_chip *c, double peak, double m, double n, double k)
{
	return c->fixed_s[AP_UNIT_CUBE] + 2 * (m + c->matmul_half[0]) * (n + c->matmul_half[1]) *
						  (k + c->matmul_half[2]) /
						  (peak * c->matmul_efficiency);
}

START_TEST(fitted_products_match_the_measured_ones)
{
	static const double tf910b[][4] = {
		/* m, n, k, TF/s; bfloat16 on a part of 353.9 TF */
		{2304, 5120, 1536, 272.6},
		{6912, 16384, 2048, 291.6},
		{6144, 17920, 2816, 301.3},
		{14336, 4096, 4096, 317.3},
	};
	const struct ap_chip *b = get_chip("ascend910b3"), *a = get_chip("a100-80");

	for (size_t i = 0; i < 4; i++) {
		const double *p = tf910b[i];
		double model =
			2e-12 * p[0] * p[1] * p[2] / product_s(b, 353.9e12, p[0], p[1], p[2]);

		ck_assert_double_lt(fabs(model / p[3] - 1), 0.03);
	}
	/* between the framework's plain product (230 TF) and the best one found (271.2 TF) */
	ck_assert_double_gt(
		2e-12 * 8192. * 8192 * 8192 / product_s(a, 312e12, 8192, 8192, 8192), 230);
	ck_assert_double_lt(
		2e-12 * 8192. * 8192 * 8192 / product_s(a, 312e12, 8192, 8192, 8192), 271.2);
}
END_TEST

/* The name of a family says which of its cards is taken; that of a card says nothing. */
START_TEST(names_of_families)
{
	static const struct { const char *name, *says; } rows[] = {
		{"910b", "910b is the name of several cards: ascend910b3 (313 TF, 64.0 GiB) is taken; others are "
			"ascend910b1 (376 TF, 64.0 GiB), ascend910b4-1 (280 TF, 64.0 GiB), ascend910b4-pcie (280 TF, 32.0 GiB)"},
		{"Ascend910B", "Ascend910B is the name of several cards: ascend910b3"},
		{"910_93", "910_93 is the name of several cards: ascend910c (376 TF, 64.0 GiB) is taken"},
		{"910b3", NULL},
		{"ascend910b1", NULL},
		{"910", NULL}, /* there is one */
		{"a100", NULL},
	};
	size_t said_so_far = 0;

	for (size_t i = 0; i < AP_COUNT(rows); i++) {
		ck_assert_int_eq(ap_chip_note_family(&ctx, rows[i].name, get_chip(rows[i].name)), AP_OK);
		if (rows[i].says)
			ck_assert_ptr_nonnull(strstr(ap_diag_text(ctx.diag, said_so_far++, NULL, NULL), rows[i].says));
	}
	ck_assert_int_eq(said(AP_NOTE, "chip-family"), (int)said_so_far);
	ck_assert_int_eq(said(AP_WARNING, NULL) + said(AP_ERROR, NULL), 0);
}
END_TEST
