/* SPDX-License-Identifier: Apache-2.0 */
#include "base/foreign.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "base/arena.h"
#include "base/num.h"
#include "base/str.h"
#include "base/vec.h"

#define LETTERS "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
#define DIGITS "0123456789"
#define MACHINE "which devices there are, a rank table in JSON says, and how they are linked, a chip " \
	"profile (--chip)"
#define JSON "every input is JSON, but strategy checkpoints and dumps"

/* A line without indent and line end. */
struct line {
	const char *s;
	size_t len;
};

/* The next line that is not blank or a comment (first character in comments); advances *at. False
 * at the end. */
static bool next_line(const char **at, const char *end, const char *comments, struct line *out)
{
	while (*at < end) {
		const char *nl = memchr(*at, '\n', (size_t)(end - *at)), *stop = nl ? nl : end;
		const char *s = *at;

		*at = nl ? nl + 1 : end;
		while (s < stop && (*s == ' ' || *s == '\t'))
			s++;
		while (stop > s && (stop[-1] == ' ' || stop[-1] == '\t' || stop[-1] == '\r'))
			stop--;
		*out = (struct line){s, (size_t)(stop - s)};
		if (s < stop && !strchr(comments, *s))
			return true;
	}
	return false;
}

static size_t span(const char *s, const char *end, const char *set)
{
	size_t n = 0;

	while (s + n < end && s[n] && strchr(set, s[n]))
		n++;
	return n;
}

static bool begins(const char *s, size_t len, const char *with)
{
	return len >= strlen(with) && !memcmp(s, with, strlen(with));
}

/* Name of the root element, after prolog and comments; NULL if not XML. */
static const char *root_of(struct ap_ctx *ctx, const char *s, const char *end)
{
	while (s < end && *s == '<') {
		const char *close = s + 1 < end && (s[1] == '?' || s[1] == '!')
			? memchr(s, '>', (size_t)(end - s)) : NULL;
		size_t n = span(s + 1, end, LETTERS DIGITS "_-:");

		if (!close)
			return n ? ap_arena_strndup(ctx->arena, s + 1, n) : NULL;
		if (begins(s, (size_t)(end - s), "<!--")) /* a comment may contain '>' */
			for (close = s + 6; close < end && memcmp(close - 2, "-->", 3); close++)
				;
		s = close < end ? close + 1 : end;
		s += span(s, end, " \t\r\n");
	}
	return NULL;
}

static const char *see_xml(struct ap_ctx *ctx, const char *text, const char *end)
{
	const char *s = text + span(text, end, " \t\r\n"), *root = root_of(ctx, s, end);

	if (!root)
		return NULL;
	if (!strcmp(root, "system") || strstr(root, "topo"))
		return ap_arena_printf(ctx->arena, "is XML, a topology of links (<%s>); " MACHINE, root);
	return ap_arena_printf(ctx->arena, "is XML (<%s>); " JSON, root);
}

/* Recognizes a matrix of devices, printed by nvidia-smi topo -m or npu-smi info -t topo. */
static const char *see_matrix(struct ap_ctx *ctx, const char *text, const char *end)
{
	const char *at = text;
	struct line l;

	(void)ctx;
	while (next_line(&at, end, "", &l)) {
		if (!begins(l.s, l.len, "GPU0") && !begins(l.s, l.len, "NPU0"))
			return NULL;
		if (l.len > 4 && (l.s[4] == ' ' || l.s[4] == '\t'))
			return "is a matrix of links, as nvidia-smi topo and npu-smi print it; " MACHINE;
	}
	return NULL;
}

static const char *see_addresses(struct ap_ctx *ctx, const char *text, const char *end)
{
	const char *at = text;
	struct line l;

	(void)ctx;
	while (next_line(&at, end, "#", &l))
		if (begins(l.s, l.len, "address_"))
			return "is an hccn.conf, the addresses of the devices of one server; expected the "
				"rank table in JSON that hccl_tools.py makes of it";
		else if (!span(l.s, l.s + l.len, LETTERS) || !memchr(l.s, '=', l.len))
			return NULL;
	return NULL;
}

static bool is_section(const struct line *l)
{
	return l->len > 2 && l->s[0] == '[' && l->s[l->len - 1] == ']' &&
		span(l->s + 1, l->s + l->len, LETTERS) &&
		span(l->s + 1, l->s + l->len, LETTERS DIGITS " ._-") == l->len - 2;
}

/* Recognizes "[section]", "key = value". */
static const char *see_ini(struct ap_ctx *ctx, const char *text, const char *end)
{
	const char *at = text;
	bool any = false;
	struct line l;

	(void)ctx;
	while (next_line(&at, end, "#;", &l)) {
		size_t key = span(l.s, l.s + l.len, LETTERS DIGITS "_.-");
		size_t gap = key + span(l.s + key, l.s + l.len, " \t");

		if (!is_section(&l) && (!key || gap == l.len || l.s[gap] != '='))
			return NULL;
		any |= !is_section(&l);
	}
	return any ? "is a list of settings as in INI or TOML files (key = value); " JSON
		", settings of --config too" : NULL;
}

/* Summary of a hostfile. */
struct hosts {
	int64_t n, slots; /* slots: per host; 0: unknown, -1: they differ */
	bool told; /* some slots are given */
};

/* Reads "node1 slots=8 max_slots=8", "node1:8" or "node1"; false for anything else. */
static bool read_host(const struct line *l, struct hosts *h)
{
	const char *end = l->s + l->len, *s = l->s;
	size_t name = span(s, end, LETTERS DIGITS "_.-[],");
	int64_t slots = 0;
	char digits[16] = "";
	size_t n;

	s += name;
	if (!name || (s < end && *s == '=') || !span(l->s, end, LETTERS DIGITS))
		return false;
	if (s < end && *s == ':') {
		n = span(++s, end, DIGITS);
		memcpy(digits, s, n < 9 ? n : 0);
		s += n;
		if (!ap_parse_int(digits, 1, INT32_MAX, &slots))
			return false;
	}
	for (s += span(s, end, " \t"); s < end; s += span(s, end, " \t")) {
		size_t key = span(s, end, LETTERS "_-");

		if (!key || s + key == end || s[key] != '=')
			return false;
		n = span(s + key + 1, end, DIGITS);
		if (begins(s, (size_t)(end - s), "slots=") && n < sizeof digits) {
			memcpy(digits, s + key + 1, n);
			digits[n] = '\0';
			if (!ap_parse_int(digits, 1, INT32_MAX, &slots))
				return false;
		}
		while (s < end && *s != ' ' && *s != '\t')
			s++;
	}
	h->told |= slots > 0;
	h->slots = !h->n || h->slots == slots ? slots : -1;
	h->n++;
	return true;
}

static const char *see_hosts(struct ap_ctx *ctx, const char *text, const char *end)
{
	static const char is[] = "is a hostfile, of MPI, DeepSpeed or Megatron, which names no devices; "
		"expected a rank table in JSON";
	struct hosts h = {0};
	const char *at = text;
	bool numbered = true;
	struct line l;

	while (next_line(&at, end, "#", &l)) {
		if (!read_host(&l, &h))
			return NULL;
		numbered &= span(l.s, l.s + l.len, LETTERS "_-") < l.len; /* a lone word is no host */
	}
	if (!h.n || (!h.told && !numbered))
		return NULL;
	if (h.slots > 0)
		return ap_arena_printf(ctx->arena, "%s, or --device-num %" PRId64
			" --devices-per-server %" PRId64 " in its place", is, h.n * h.slots, h.slots);
	return ap_arena_printf(ctx->arena, "%s, or --device-num and --devices-per-server in its place", is);
}

/* Recognizes "---", "key:", "- item". */
static const char *see_yaml(struct ap_ctx *ctx, const char *text, const char *end)
{
	static const char yaml[] = "is YAML; " JSON "; of YAML that of MindFormers alone is read "
		"(parallel_config, runner_config), by --config";
	const char *at = text;
	struct line l;
	size_t key;

	(void)ctx;
	if (!next_line(&at, end, "#", &l))
		return NULL;
	if (begins(l.s, l.len, "---") || begins(l.s, l.len, "- "))
		return yaml;
	key = span(l.s, l.s + l.len, LETTERS DIGITS "_.-");
	if (!key || key == l.len || l.s[key] != ':' || (key + 1 < l.len && l.s[key + 1] != ' '))
		return NULL;
	return yaml;
}

static const char *see_packed(struct ap_ctx *ctx, const char *text, const char *end)
{
	static const struct {
		const char *head, *what;
	} rows[] = {{"\x1f\x8b", "gzip"}, {"PK\x03\x04", "zip"}, {"\xfd" "7zXZ", "xz"}, {"BZh", "bzip2"},
		{"\x28\xb5\x2f\xfd", "zstd"}};

	for (size_t i = 0; i < AP_COUNT(rows); i++)
		if (begins(text, (size_t)(end - text), rows[i].head))
			return ap_arena_printf(ctx->arena, "is packed by %s; expected what is in it",
				rows[i].what);
	return NULL;
}

/* The first match counts. */
static const struct {
	const char *(*see)(struct ap_ctx *ctx, const char *text, const char *end);
	bool binary;
} rows[] = {
	{see_packed, true},
	{see_xml, false},
	{see_matrix, false},
	{see_addresses, false},
	{see_ini, false},
	{see_hosts, false},
	{see_yaml, false},
};

const char *ap_foreign(struct ap_ctx *ctx, const char *text, size_t len)
{
	static const char mark[] = "\xef\xbb\xbf";
	const char *end = text + len, *what = NULL;
	bool text_only = true;

	if (begins(text, len, mark))
		text += strlen(mark);
	for (const char *s = text; s < end && text_only; s++)
		text_only = (unsigned char)*s >= 0x20 || *s == '\t' || *s == '\n' || *s == '\r';
	for (size_t i = 0; i < AP_COUNT(rows) && !what; i++)
		if (rows[i].binary || text_only)
			what = rows[i].see(ctx, text, end);
	return what;
}
