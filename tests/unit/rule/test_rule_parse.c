/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "base/vec.h"
#include "harness.h"
#include "rule/notation.h"
#include "rule/op.h"

START_TEST(every_row_parses)
{
	const struct ap_op_row *row;

	for (size_t i = 0; (row = ap_op_at(i)); i++) {
		struct ap_rule r;
		size_t at;
		const char *wrong = ap_rule_parse(row->rule, &r, &at);

		ck_assert_msg(!wrong, "%s \"%s\" at %zu: %s", row->name, row->rule, at, wrong);
		ck_assert_uint_eq(at, strlen(row->rule));
	}
}
END_TEST

/* Every other column of a row names only what its rule has. */
START_TEST(columns_fit_the_rule)
{
	const struct ap_op_row *row;

	for (size_t i = 0; (row = ap_op_at(i)); i++) {
		const char *colon = strchr(row->types, ':');
		struct ap_rule r;
		size_t at;

		ap_rule_parse(row->rule, &r, &at);
		ck_assert_msg(colon > row->types && colon[1], "types of %s", row->name);
		if (r.expander.len) { /* numbers by the operator */
			r.nin = (uint16_t)(colon - row->types);
			r.nout = (uint16_t)strlen(colon + 1);
		}
		ck_assert_msg(colon - row->types == r.nin && strlen(colon + 1) == r.nout,
			"types of %s", row->name);
		for (const char *p = row->save; *p; p++)
			ck_assert_msg(*p >= 'o' ? *p - 'o' < r.nout : *p - 'a' < r.nin ||
				r.expander.len, "save of %s", row->name);
		for (const char *p = row->grad; *p && *p != '*'; p++)
			ck_assert_msg(*p - 'a' < r.nin, "grad of %s", row->name);
		ck_assert_msg(row->flops >= 0 && row->backward >= 0, "flops of %s", row->name);
		ck_assert_msg(*row->doc && *row->source, "doc of %s", row->name);
	}
}
END_TEST

START_TEST(terms_are_read)
{
	struct ap_rule r;
	size_t at;

	ck_assert_ptr_null(ap_rule_parse("v@d,*x^(ng!)8.;?->*[axis=-1..!] : ng=head_num", &r,
		&at));
	ck_assert_uint_eq(r.nin, 3);
	ck_assert_uint_eq(r.nrequired, 2);
	ck_assert_uint_eq(r.nout, 1);
	ck_assert_uint_eq(r.lookup, UINT32_C(1) << ('v' - 'a'));
	ck_assert_uint_eq(r.frozen, UINT32_C(1) << ('g' - 'a'));
	ck_assert(r.in[1].star && !r.in[0].star && r.in[2].whole);
	ck_assert_uint_eq(r.in[1].nterm, 5);
	ck_assert(r.in[1].term[1].broadcast && !r.in[1].term[2].broadcast);
	ck_assert_uint_eq(r.in[1].term[2].n, 2);
	ck_assert_int_eq(r.in[1].term[2].letter[1], 'g');
	ck_assert_int_eq(r.in[1].term[3].length, 8);
	ck_assert_int_eq(r.in[1].term[4].kind, AP_TERM_ANY);
	ck_assert_int_eq(r.out[0].term[1].kind, AP_TERM_AXIS);
	ck_assert(r.axis[0].has_default && r.axis[0].to_end && r.axis[0].frozen);
	ck_assert_int_eq(r.axis[0].otherwise, -1);
	ck_assert(!r.axis[0].single);
	ck_assert_uint_eq(r.equation[0].n, 2);
	ck_assert_int_eq(strncmp(r.equation[0].attr.s, "head_num", r.equation[0].attr.len), 0);
}
END_TEST

START_TEST(one_dimension_is_read)
{
	struct ap_rule r;
	size_t at;

	ck_assert_ptr_null(ap_rule_parse("*[axis.!]->*[axis]", &r, &at));
	ck_assert(r.axis[0].single && r.axis[0].frozen && !r.axis[0].to_end);
	ck_assert(!r.axis[0].has_default && !r.axis[0].reorder);
	ck_assert_ptr_null(ap_rule_parse("*[axis=-2.]->*[1]", &r, &at));
	ck_assert(r.axis[0].single && !r.axis[0].frozen);
	ck_assert_int_eq(r.axis[0].otherwise, -2);
}
END_TEST

START_TEST(windows_and_results_are_read)
{
	struct ap_rule r;
	size_t at;

	ck_assert_ptr_null(ap_rule_parse("nh~rc,cr->nh,();n,n", &r, &at));
	ck_assert_int_eq(r.in[0].term[1].window, 'r');
	ck_assert_int_eq(r.in[0].term[0].window, 0);
	ck_assert_uint_eq(r.window, UINT32_C(1) << ('r' - 'a'));
	ck_assert_uint_eq(r.nout, 4);
	ck_assert_uint_eq(r.nmade, 2);
	ck_assert_uint_eq(r.out[1].nterm, 0);
	ck_assert_ptr_null(ap_rule_parse("nh,cr->nch~r", &r, &at));
	ck_assert_int_eq(r.out[0].term[2].window, 'r');
	ck_assert_uint_eq(r.window, UINT32_C(1) << ('r' - 'a'));
}
END_TEST

static const struct {
	const char *text, *wrong;
	size_t at;
} bad[] = {
	{"", "an operand or result is empty", 0},
	{"mk", "\"->\" must follow", 2},
	{"mk,->m", "an operand or result is empty", 3},
	{"mk->", "an operand or result is empty", 4},
	{"mk->mz", "a result has a factor that no operand has", 6},
	{"mk->*", "a result has \"*\" and no operand has", 5},
	{"**->*", "\"*\" stands twice in one tensor", 2},
	{"*->?", "a result cannot be \"?\"", 4},
	{"m(k)->m", "a composed dimension needs two factors", 4},
	{"m(k->m", "a factor letter must follow", 3},
	{"Mk->m", "a factor letter must follow", 0},
	{"*[Axis]->*", "a name must follow", 2},
	{"*[axis->*", "\"]\" must follow", 6},
	{"*[axis=]->*", "a number must follow", 7},
	{"*[axis=1...]->*", "\"]\" must follow", 10},
	{"*[axis]->*[1", "\"]\" must follow", 12},
	{"a;b;c->a", "\";\" stands twice", 3},
	{"abcdefghi->a", "too many dimensions", 8},
	{"(abcdefg)->a", "too many factors in one dimension", 7},
	{"a,a,a,a,a,a,a,a,a,a,a,a,a,a,a,a,a,a,a,a,a,a,a,a,a,a,a->a", "too many operands", 52},
	{"a->a,a,a,a,a,a", "too many results", 13},
	{"a->a;a;a", "\";\" stands twice", 6},
	{"h~->h", "a letter must follow", 2},
	{"(ab)~r->a", "windows slide over one factor", 5},
	{"a,b->(ab)~r", "windows slide over one factor", 10},
	{"b()->b", "a composed dimension needs two factors", 3},
	{"a->ab : b", "a factor letter must follow", 9},
	{"a->ab : b=", "a name must follow", 10},
	{"a->a x", "nothing more may follow", 5},
	{"=", "a name must follow", 1},
	{"=reshape x", "nothing more may follow", 8},
};

START_LOOP_TEST(mistakes_are_told_where_they_are, AP_COUNT(bad))
{
	struct ap_rule r;
	size_t at;
	const char *wrong = ap_rule_parse(bad[_i].text, &r, &at);

	ck_assert_msg(wrong, "\"%s\" is accepted", bad[_i].text);
	ck_assert_str_eq(wrong, bad[_i].wrong);
	ck_assert_uint_eq(at, bad[_i].at);
}
END_TEST
