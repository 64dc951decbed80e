/* SPDX-License-Identifier: Apache-2.0 */
/* One sheet in its three forms. */
#include <math.h>

#include "report/sheet.h"
#include "unit.h"

static const struct ap_column columns[] = {{"name", "name", AP_CELL_NAME}, {"step_s", "step", AP_CELL_SECONDS},
	{"more", "more", AP_CELL_CHANGE}, {"fits", "fits", AP_CELL_BOOL}};

static struct ap_sheet *make(struct ap_ctx *ctx)
{
	struct ap_sheet *s = ap_sheet_create(ctx, "autopar-test/1");

	ap_sheet_thing(s, "plan", "net|1", "on %d devices", 8);
	ap_sheet_block(s, "plans", "all plans");
	ap_sheet_number(s, "total_bytes", "in all", AP_CELL_BYTES, 3 << 20);
	ap_sheet_words(s, "why", "why", NULL);
	ap_sheet_columns(s, columns, AP_COUNT(columns));
	ap_sheet_cell_text(s, "a\tb");
	ap_sheet_cell(s, 0.0015);
	ap_sheet_cell(s, -0.031);
	ap_sheet_cell(s, 1);
	ap_sheet_cell_text(s, "layers.*.\xc3\xa4");
	ap_sheet_cell(s, NAN);
	ap_sheet_cell(s, INFINITY);
	ap_sheet_cell(s, 0);
	ap_sheet_remark(s, "%d of %s", 2, "them");
	ap_sheet_block(s, "nothing", "nothing");
	return s;
}

static const char *written(struct ap_ctx *ctx, enum ap_sheet_form form)
{
	struct ap_str out;

	ap_str_init(&out, ctx->arena);
	ap_sheet_write(make(ctx), form, &out);
	return out.s;
}

START_TEST(people_read_columns)
{
	struct ap_ctx ctx = ctx_create(false);

	ck_assert_str_eq(written(&ctx, AP_SHEET_TEXT),
		"plan net|1, on 8 devices\n\nall plans\n"
		"  in all                  3.00 MiB\n"
		"  why                     \n"
		"  name           step     more  fits\n"
		"  a\\tb        1.50 ms  -3.10 %   yes\n"
		"  layers.*.\xc3\xa4\n"
		"  2 of them\n");
	ctx_destroy(&ctx);
}
END_TEST

START_TEST(names_mean_nothing_to_markdown)
{
	struct ap_ctx ctx = ctx_create(false);

	ck_assert_str_eq(written(&ctx, AP_SHEET_MARKDOWN),
		"## plan net\\|1\n\non 8 devices\n\n### all plans\n\n* in all: 3.00 MiB\n* why: \n\n"
		"| name | step | more | fits |\n| --- | ---: | ---: | ---: |\n"
		"| a\\\\tb | 1.50 ms | -3.10 % | yes |\n| layers.\\*.\xc3\xa4 |  |  |  |\n\n2 of them\n");
	ctx_destroy(&ctx);
}
END_TEST

START_TEST(programs_get_numbers)
{
	struct ap_ctx ctx = ctx_create(false);
	const char *text = written(&ctx, AP_SHEET_JSON);

	ck_contains(text, "\"schema\": \"autopar-test/1\"");
	ck_contains(text, "\"total_bytes\": 3145728");
	ck_contains(text, "\"why\": null");
	ck_contains(text, "{\"name\": \"a\\tb\", \"step_s\": 0.0015, \"more\": -0.031, \"fits\": true}");
	ck_contains(text, "{\"name\": \"layers.*.\xc3\xa4\", \"step_s\": null, \"more\": null, \"fits\": false}");
	ck_contains(text, "\"remarks\"");
	ck_contains(text, "\"nothing\": {}");
	ctx_destroy(&ctx);
}
END_TEST

/* A share shows that it is none, however small. */
START_TEST(shares_have_the_digits_that_matter)
{
	static const struct {
		double share;
		const char *text;
	} of[] = {{0, "0 %"}, {1, "100 %"}, {0.5, "50.0 %"}, {0.0123, "1.23 %"}, {0.000012, "0.001 %"},
		{1e-7, "< 0.001 %"}};

	for (size_t i = 0; i < AP_COUNT(of); i++) {
		struct ap_ctx ctx = ctx_create(false);
		struct ap_sheet *s = ap_sheet_create(&ctx, "x");
		struct ap_str out;

		ap_sheet_thing(s, "a", "b", "%s", "");
		ap_sheet_block(s, "c", "c");
		ap_sheet_number(s, "share", "share", AP_CELL_SHARE, of[i].share);
		ap_str_init(&out, ctx.arena);
		ap_sheet_write(s, AP_SHEET_TEXT, &out);
		ck_contains(out.s, of[i].text);
		ctx_destroy(&ctx);
	}
}
END_TEST
