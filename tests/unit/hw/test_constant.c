/* SPDX-License-Identifier: Apache-2.0 */
/* Numbers of profiles by name, and profiles written: every built-in one comes back as it was. */
#include "hw/constant.h"

#include <math.h>

#include "base/json.h"
#include "base/str.h"
#include "base/vec.h"
#include "hw/builtin.h"
#include "hw/profile_write.h"
#include "hw_test.h"

TEST_FIXTURE(setup, teardown)

static const struct ap_json *document(const char *name, const char *text)
{
	struct ap_json *doc;

	ck_assert_int_eq(ap_json_parse(&ctx, name, text, strlen(text), 0, &doc), AP_OK);
	return doc;
}

static struct ap_chip chip_of(const char *text)
{
	struct ap_chip chip;

	ck_assert_int_eq(ap_chip_parse(&ctx, document("chip.json", text), &chip), AP_OK);
	return chip;
}

static struct ap_software software_of(const char *text)
{
	struct ap_software software;

	ck_assert_int_eq(ap_software_parse(&ctx, document("software.json", text), &software), AP_OK);
	return software;
}

static void assert_same_numbers(const struct ap_constant *a, size_t na, const struct ap_constant *b,
	size_t nb)
{
	ck_assert_uint_eq(na, nb);
	for (size_t i = 0; i < na; i++) {
		ck_assert_str_eq(a[i].path, b[i].path);
		ck_assert_msg(memcmp(&(double){ap_constant_get(&a[i])}, &(double){ap_constant_get(&b[i])},
			sizeof(double)) == 0, "%s", a[i].path);
	}
}

static void assert_same_sources(struct ap_profile_sources a, struct ap_profile_sources b)
{
	ck_assert_int_eq(a.n, b.n);
	for (int i = 0; i < a.n; i++) {
		ck_assert_str_eq(a.v[i].path, b.v[i].path);
		ck_assert_str_eq(a.v[i].text, b.v[i].text);
	}
}

START_TEST(chips_are_written_as_they_were_read)
{
	for (const struct ap_builtin *p = ap_builtin_chips; p->name; p++) {
		struct ap_chip a = chip_of(p->text), b;
		struct ap_constant *list, *list_again;
		struct ap_str text, again;
		size_t n, n_again;

		ap_str_init(&text, ctx.arena);
		ap_chip_write(&a, &text);
		b = chip_of(text.s);
		ap_str_init(&again, ctx.arena);
		ap_chip_write(&b, &again);
		ck_assert_str_eq(text.s, again.s);
		n = ap_chip_constants(ctx.arena, &a, &list);
		n_again = ap_chip_constants(ctx.arena, &b, &list_again);
		assert_same_numbers(list, n, list_again, n_again);
		assert_same_sources(a.sources, b.sources);
		ck_assert_str_eq(a.name, b.name);
		ck_assert_str_eq(a.hccl, b.hccl);
		ck_assert_int_eq(a.nalias, b.nalias);
		for (int l = 0; l < a.nlevel; l++) {
			const struct ap_link_level *x = &a.level[l], *y = &b.level[l];

			ck_assert_str_eq(x->name, y->name);
			ck_assert_int_eq(x->kind, y->kind);
			ck_assert_int_eq(x->within, y->within);
			ck_assert_uint_eq(x->span, y->span);
			ck_assert_int_eq(x->nlinks, y->nlinks);
			for (int i = 0; i < x->nlinks; i++)
				ck_assert_double_eq(x->links[i], y->links[i]);
		}
	}
}
END_TEST

START_TEST(software_is_written_as_it_was_read)
{
	for (const struct ap_builtin *p = ap_builtin_software; p->name; p++) {
		struct ap_software a = software_of(p->text), b;
		struct ap_constant *list, *list_again;
		struct ap_str text, again;
		size_t n, n_again;

		ap_str_init(&text, ctx.arena);
		ap_software_write(&a, &text);
		b = software_of(text.s);
		ap_str_init(&again, ctx.arena);
		ap_software_write(&b, &again);
		ck_assert_str_eq(text.s, again.s);
		n = ap_software_constants(ctx.arena, &a, &list);
		n_again = ap_software_constants(ctx.arena, &b, &list_again);
		assert_same_numbers(list, n, list_again, n_again);
		assert_same_sources(a.sources, b.sources);
		ck_assert_str_eq(a.name, b.name);
		ck_assert_int_eq(a.nalias, b.nalias);
		ck_assert_str_eq(a.versions, b.versions);
		ck_assert_str_eq(a.dates, b.dates);
		ck_assert_uint_eq(a.chains, b.chains);
		ck_assert_int_eq(a.attention, b.attention);
		ck_assert_int_eq(a.gradient_sum, b.gradient_sum);
	}
}
END_TEST

/* What lies at a path is what the rest of the program reads, and a copy changes alone. */
START_TEST(a_path_leads_to_its_field)
{
	const struct ap_chip *built_in = get_chip("a100-80");
	struct ap_chip chip = *built_in;
	struct ap_constant *list;
	size_t n = ap_chip_constants(ctx.arena, &chip, &list);
	const struct {
		const char *path, *unit;
		double *field;
	} rows[] = {
		{"peak_flops.cube.bfloat16", "FLOP/s", &chip.peak_flops[AP_UNIT_CUBE][AP_BFLOAT16]},
		{"peak_flops.vector.float32", "FLOP/s", &chip.peak_flops[AP_UNIT_VECTOR][AP_FLOAT32]},
		{"fixed_s.vector", "s", &chip.fixed_s[AP_UNIT_VECTOR]},
		{"fixed_s.collective", "s", &chip.collective_fixed_s},
		{"efficiency.matmul", "share", &chip.matmul_efficiency},
		{"matmul_half.k", "elements", &chip.matmul_half[2]},
		{"attention.flash-2.backward", "share", &chip.attention[AP_ATTENTION_FLASH_2].backward},
		{"attention.flash-2.half", "elements", &chip.attention[AP_ATTENTION_FLASH_2].half},
		{"levels.ib.latency_s", "s", &chip.level[1].latency_s},
	};

	for (size_t i = 0; i < AP_COUNT(rows); i++) {
		const struct ap_constant *c = ap_constant_find(list, n, rows[i].path);

		ck_assert_msg(c != NULL, "no %s", rows[i].path);
		ck_assert_str_eq(c->unit, rows[i].unit);
		ck_assert_double_eq(ap_constant_get(c), *rows[i].field);
		ap_constant_set(c, c->least + (*rows[i].field - c->least) / 2);
		ck_assert_double_eq(*rows[i].field, ap_constant_get(c));
	}
	ck_assert_double_eq(built_in->level[1].latency_s, 14e-6);
	ck_assert_double_eq(chip.level[1].latency_s, 7e-6);
	ck_assert_ptr_null(ap_constant_find(list, n, "levels.ib"));
	ck_assert_ptr_null(ap_constant_find(list, n, "attention.npu.forward"));
	ap_constant_set(ap_constant_find(list, n, "devices_per_server"), 15.6); /* whole */
	ck_assert_int_eq(chip.server_devices, 16);
}
END_TEST

/* A range to fit in is one that may be stated, and is there for numbers that a step's time depends on. */
START_TEST(ranges_are_such)
{
	for (const struct ap_builtin *p = ap_builtin_chips; p->name; p++) {
		struct ap_chip chip = chip_of(p->text);
		struct ap_constant *list;
		size_t n = ap_chip_constants(ctx.arena, &chip, &list);

		for (size_t i = 0; i < n; i++) {
			double value = ap_constant_get(&list[i]);

			ck_assert_msg((value >= list[i].least && value <= list[i].most) ||
				memcmp(&value, &list[i].otherwise, sizeof value) == 0, "%s: %s", p->name,
				list[i].path);
			ck_assert(list[i].from <= list[i].to && list[i].to <= list[i].most);
			ck_assert(list[i].to <= 0 || (list[i].from > 0 && list[i].from >= list[i].least));
			for (size_t k = 0; k < i; k++)
				ck_assert_str_ne(list[i].path, list[k].path);
		}
	}
}
END_TEST

START_TEST(sources_are_of_a_number_or_of_what_it_lies_in)
{
	static const struct ap_profile_source v[] = {{"attention", "all of it"},
		{"attention.npu.forward", "fitted to 3 runs"}, {"fixed_s", "inferred: a guess"},
		{"launch_s", "assumed: another"}};
	struct ap_profile_sources s = {v, (int)AP_COUNT(v)};

	ck_assert_str_eq(ap_source_of(s, "attention.npu.forward"), "fitted to 3 runs");
	ck_assert_str_eq(ap_source_of(s, "attention.npu.backward"), "all of it");
	ck_assert_str_eq(ap_source_of(s, "fixed_s.cube"), "inferred: a guess");
	ck_assert_ptr_null(ap_source_of(s, "fixed"));
	ck_assert_ptr_null(ap_source_of(s, "launch"));
	ck_assert_int_eq(ap_basis_of(ap_source_of(s, "attention.npu.forward")), AP_BASIS_FITTED);
	ck_assert_int_eq(ap_basis_of(ap_source_of(s, "attention.npu.backward")), AP_BASIS_PUBLISHED);
	ck_assert_int_eq(ap_basis_of(ap_source_of(s, "fixed_s.cube")), AP_BASIS_ASSUMED);
	ck_assert_int_eq(ap_basis_of(ap_source_of(s, "launch_s")), AP_BASIS_ASSUMED);
	ck_assert_int_eq(ap_basis_of(ap_source_of(s, "memory")), AP_BASIS_NONE);
	s = ap_sources_with(ctx.arena, s, "fixed_s", "fitted to 9 products");
	s = ap_sources_with(ctx.arena, s, "memory", "a datasheet");
	ck_assert_int_eq(s.n, 5);
	ck_assert_str_eq(ap_source_of(s, "fixed_s.cube"), "fitted to 9 products");
	ck_assert_int_eq(ap_basis_of(ap_source_of(s, "fixed_s.cube")), AP_BASIS_PUBLISHED); /* kernels */
	ck_assert_str_eq(ap_source_of(s, "memory.bytes"), "a datasheet");
	ck_assert_str_eq(v[2].text, "inferred: a guess");
}
END_TEST
