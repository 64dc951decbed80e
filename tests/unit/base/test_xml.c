/* SPDX-License-Identifier: Apache-2.0 */
#include "base/xml.h"

#include "base/arena.h"
#include "base/diag.h"
#include "base/str.h"
#include "unit.h"

static struct ap_ctx ctx;

static void setup(void)
{
	ctx = ctx_create(false);
}

static void teardown(void)
{
	ctx_destroy(&ctx);
}

TEST_FIXTURE(setup, teardown)

static enum ap_status parse(const char *text, size_t len, const struct ap_xml **out)
{
	return ap_xml_parse(&ctx, "t.xml", text, len, out);
}

/* The tree as "name(attribute=value ..)@line:col{..}". */
static void show(const struct ap_xml *x, struct ap_str *out)
{
	for (; x; x = x->next) {
		ap_str_addf(out, "%s", x->name);
		for (const struct ap_xml_attribute *a = x->attribute; a; a = a->next)
			ap_str_addf(out, "(%s=%s)", a->name, a->value);
		ap_str_addf(out, "@%d:%d", (int)x->line, (int)x->col);
		if (x->first) {
			ap_str_addc(out, '{');
			show(x->first, out);
			ap_str_addc(out, '}');
		}
		ap_str_addc(out, ';');
	}
}

START_TEST(trees)
{
	static const struct { const char *text, *tree; } cases[] = {
		{"<a/>", "a@1:1;"},
		{"<?xml version=\"1.0\"?>\n<!-- x > y -->\n<a b=\"1\" c='2'><d/>text<e f=\"&lt;&#65;&amp;\"/></a>\n",
			"a(b=1)(c=2)@3:1{d@3:16;e(f=<A&)@3:24;};"},
		{"<a><b><c/></b>\n <b/></a>", "a@1:1{b@1:4{c@1:7;};b@2:2;};"},
		{"\xef\xbb\xbf<a n=\"\xc3\xa4\"/>", "a(n=\xc3\xa4)@1:1;"},
		{"<a><![CDATA[<b>]]></a>", "a@1:1;"},
	};

	for (size_t i = 0; i < AP_COUNT(cases); i++) {
		const struct ap_xml *x = NULL;
		struct ap_str out;

		ck_assert_int_eq(parse(cases[i].text, strlen(cases[i].text), &x), AP_OK);
		ap_str_init(&out, ctx.arena);
		show(x, &out);
		ck_assert_str_eq(out.s, cases[i].tree);
	}
}
END_TEST

START_TEST(what_is_looked_up)
{
	static const char text[] = "<a><b n=\"1\"/><c/><b n=\"2\"/></a>";
	const struct ap_xml *x = NULL;

	ck_assert_int_eq(parse(text, strlen(text), &x), AP_OK);
	ck_assert_str_eq(ap_xml_get(ap_xml_child(x, "b"), "n"), "1");
	ck_assert_ptr_null(ap_xml_get(x, "n"));
	ck_assert_ptr_null(ap_xml_child(x, "d"));
	ck_assert_ptr_eq(ap_xml_child(x, "c")->parent, x);
}
END_TEST

/* No text makes more than itself: entities are refused before the first is expanded. */
START_TEST(hostile_texts)
{
	static const struct { const char *text; enum ap_status st; const char *says; } cases[] = {
		{"<?xml version=\"1.0\"?>\n<!DOCTYPE l [<!ENTITY a \"ha\"><!ENTITY b \"&a;&a;&a;&a;&a;&a;&a;&a;\">"
			"<!ENTITY c \"&b;&b;&b;&b;&b;&b;&b;&b;\"><!ENTITY d \"&c;&c;&c;&c;&c;&c;&c;&c;\">]>\n<l>&d;</l>",
			AP_MEANING, "document type"},
		{"<!DOCTYPE a SYSTEM \"file:///etc/passwd\"><a/>", AP_MEANING, "document type"},
		{"<!DOCTYPE a [<!ENTITY e SYSTEM \"file:///etc/passwd\">]><a>&e;</a>", AP_MEANING, "document type"},
		{"<!DOCTYPE a [<!ENTITY % e SYSTEM \"http://localhost/x\">%e;]><a/>", AP_MEANING, "document type"},
		{"<a>&e;</a>", AP_SYNTAX, "undefined entity"},
		{"<a", AP_SYNTAX, "unclosed token"},
		{"<a><b></a>", AP_SYNTAX, "mismatched tag"},
		{"<a/><b/>", AP_SYNTAX, "junk"},
		{"<a n=\"1\" n=\"2\"/>", AP_SYNTAX, "duplicate attribute"},
		{"<a n=1/>", AP_SYNTAX, "not well-formed"},
		{"", AP_SYNTAX, "no element found"},
		{"text", AP_SYNTAX, ""},
		{"<a n=\"\xff\"/>", AP_SYNTAX, "not well-formed"},
		{"<?xml version=\"1.0\" encoding=\"x-none\"?><a/>", AP_SYNTAX, "unknown encoding"},
	};

	for (size_t i = 0; i < AP_COUNT(cases); i++) {
		const struct ap_xml *x = NULL;
		struct ap_ctx own = ap_diag_apart(&ctx);
		struct ap_str said;

		ck_assert_msg(ap_xml_parse(&own, "t.xml", cases[i].text, strlen(cases[i].text), &x) == cases[i].st,
			"%s", cases[i].text);
		ap_str_init(&said, ctx.arena);
		ap_diag_render(own.diag, AP_ERROR, 9, &said);
		ck_assert_msg(strstr(said.s, cases[i].says) && strstr(said.s, "t.xml:"), "%s", said.s);
		ck_assert_uint_eq(ap_diag_count(own.diag, AP_ERROR), 1);
	}
	ck_assert_int_eq(parse("<a>\0</a>", 8, &(const struct ap_xml *){NULL}), AP_SYNTAX);
	ck_assert_int_eq(parse("<a n=\"\0\"/>", 10, &(const struct ap_xml *){NULL}), AP_SYNTAX);
}
END_TEST

static const char *repeat(const char *open, size_t n, const char *middle, const char *close)
{
	struct ap_str s;

	ap_str_init(&s, ctx.arena);
	for (size_t i = 0; i < n; i++)
		ap_str_add(&s, open);
	ap_str_add(&s, middle);
	for (size_t i = 0; i < n && *close; i++)
		ap_str_add(&s, close);
	return s.s;
}

START_TEST(limits)
{
	const struct ap_xml *x = NULL;
	const char *text = repeat("<a>", AP_XML_MOST_DEPTH, "", "</a>");
	struct ap_str s;
	int depth = 0;

	ck_assert_int_eq(parse(text, strlen(text), &x), AP_OK);
	for (; x; x = x->first)
		depth++;
	ck_assert_int_eq(depth, AP_XML_MOST_DEPTH);
	text = repeat("<a>", AP_XML_MOST_DEPTH + 1, "", "</a>");
	ck_assert_int_eq(parse(text, strlen(text), &x), AP_LIMIT);
	text = repeat("<a>", 1000000, "", "");
	ck_assert_int_eq(parse(text, strlen(text), &x), AP_LIMIT);

	ap_str_init(&s, ctx.arena);
	ap_str_addf(&s, "<r>%s</r>", repeat("<a/>", AP_XML_MOST_ELEMENTS - 1, "", ""));
	ck_assert_int_eq(parse(s.s, s.len, &x), AP_OK);
	ap_str_init(&s, ctx.arena);
	ap_str_addf(&s, "<r>%s</r>", repeat("<a/>", AP_XML_MOST_ELEMENTS, "", ""));
	ck_assert_int_eq(parse(s.s, s.len, &x), AP_LIMIT);

	/* an attribute of 8 MB */
	ap_str_init(&s, ctx.arena);
	ap_str_addf(&s, "<a n=\"%s\"/>", repeat("01234567", 1 << 20, "", ""));
	ck_assert_int_eq(parse(s.s, s.len, &x), AP_OK);
	ck_assert_uint_eq(strlen(ap_xml_get(x, "n")), 8 << 20);
}
END_TEST
