/* SPDX-License-Identifier: Apache-2.0 */
/* What the tests of servers share: files of tests/topologies/servers, chips joined as they say. */
#ifndef AP_TESTS_SERVER_TEST_H
#define AP_TESTS_SERVER_TEST_H

#include <math.h>
#include <stdio.h>

#include "base/file.h"
#include "base/foreign.h"
#include "base/num.h"
#include "base/str.h"
#include "base/vec.h"
#include "hw/link_matrix.h"
#include "hw/nccl_xml.h"
#include "hw_test.h"

static inline enum ap_status read_server(const char *name, const char *text, size_t len,
	const struct ap_server **out)
{
	return ap_foreign_machine(&ctx, text, len) == AP_TEXT_NCCL_XML
		? ap_server_read_xml(&ctx, name, text, len, out) : ap_server_read_matrix(&ctx, name, text, len, out);
}

static inline const struct ap_server *server_of(const char *name)
{
	const struct ap_server *s = NULL;
	char *text;
	size_t len;

	ck_assert_int_eq(ap_file_read(&ctx, ap_arena_printf(ctx.arena, AP_SOURCE_ROOT "/tests/topologies/servers/%s", name),
		AP_FILE_MAX_BYTES, &text, &len), AP_OK);
	ck_assert_int_eq(read_server(name, text, len, &s), AP_OK);
	return s;
}

static inline const struct ap_chip *join(const struct ap_server *s, const char *chip)
{
	const struct ap_chip *out = NULL;

	ck_assert_int_eq(ap_server_chip(&ctx, s, get_chip(chip), &out), AP_OK);
	return out;
}

/* Levels as "name kind span rate share, ..", rates in GB/s, and of a mesh the links of groups. */
static inline const char *levels_of(const struct ap_chip *chip)
{
	struct ap_str s;
	char a[32], b[32];

	ap_str_init(&s, ctx.arena);
	for (int l = 0; l < chip->nlevel; l++) {
		const struct ap_link_level *v = &chip->level[l];

		ap_str_addf(&s, "%s%s %s %u %s %s", l ? ", " : "", v->name, ap_link_name(v->kind), v->span,
			ap_format_double(v->bandwidth_Bps / 1e9, a),
			ap_format_double(floor(v->efficiency * 1e6 + 0.5) / 1e6, b));
		for (int i = 0; i < v->nlinks; i++)
			ap_str_addf(&s, "%s%s", i ? " " : " of ", ap_format_double(v->links[i], a));
	}
	return s.s;
}

#endif
