/* SPDX-License-Identifier: Apache-2.0 */
#include "base/foreign.h"

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "base/arena.h"
#include "base/str.h"
#include "base/vec.h"

#define LETTERS "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
#define DIGITS "0123456789"
#define MACHINE "it is read as RANK_TABLE and by --topology"
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

static const char *see_nccl(struct ap_ctx *ctx, const char *text, const char *end)
{
	const char *root = root_of(ctx, text + span(text, end, " \t\r\n"), end);

	if (!root || (strcmp(root, "system") && strcmp(root, "graphs")))
		return NULL;
	return ap_arena_printf(ctx->arena, "is XML of NCCL (<%s>), which describes a server; " MACHINE, root);
}

static const char *see_xml(struct ap_ctx *ctx, const char *text, const char *end)
{
	const char *root = root_of(ctx, text + span(text, end, " \t\r\n"), end);

	if (!root)
		return NULL;
	if (strstr(root, "topo"))
		return ap_arena_printf(ctx->arena, "is XML, a topology (<%s>), but not NCCL's; "
			"expected what NCCL writes with NCCL_TOPO_DUMP_FILE, or a rank "
			"table", root);
	return ap_arena_printf(ctx->arena, "is XML (<%s>); " JSON, root);
}

/* Skips blanks, and what colours text on a terminal (ESC [ .. m). */
static const char *skip_colour(const char *s, const char *end)
{
	for (;;) {
		s += span(s, end, " \t");
		if (s == end || *s != '\x1b')
			return s;
		s += 1 + span(s + 1, end, "[;" DIGITS);
		s += s < end;
	}
}

/* Recognizes the head of a matrix of devices, printed by nvidia-smi topo -m or npu-smi info -t topo,
 * which may stand below other output: "GPU0 GPU1", "GPU0 CPU Affinity". */
static const char *see_matrix(struct ap_ctx *ctx, const char *text, const char *end)
{
	static const char *const kinds[] = {"GPU", "NPU"};
	const char *at = text;
	struct line l;

	(void)ctx;
	while (next_line(&at, end, "", &l)) {
		const char *stop = l.s + l.len, *s = skip_colour(l.s, stop), *next;

		for (size_t i = 0; i < AP_COUNT(kinds); i++) {
			if (!begins(s, (size_t)(stop - s), kinds[i]) || s + 3 == stop || s[3] != '0')
				continue;
			next = skip_colour(s + 4, stop);
			if (next > s + 4 && (begins(next, (size_t)(stop - next), kinds[i]) ||
				begins(next, (size_t)(stop - next), "CPU") ||
				begins(next, (size_t)(stop - next), "NIC") ||
				begins(next, (size_t)(stop - next), "mlx")))
				return "is a matrix of links, as nvidia-smi topo and npu-smi print it, "
					"which describes a server; " MACHINE;
		}
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

/* Recognizes a line of a list of hosts: "node1 slots=8 max_slots=8", "node1:8", "node[01-16],login", the
 * numbers of slots "8(x15),4", and what env prints of Slurm. *told: it has slots. */
static bool is_hosts(const struct line *l, bool *told)
{
	const char *end = l->s + l->len, *s = l->s;
	size_t name = span(s, end, LETTERS DIGITS "_.-[],*");
	bool slurm = begins(s, l->len, "SLURM_") || begins(s, l->len, "export SLURM_");

	*told = slurm || (name && span(s, end, DIGITS "(x),") == l->len);
	if (*told)
		return !slurm || memchr(s, '=', l->len);
	s += name;
	if (!name || (s < end && *s == '=') || !span(l->s, end, LETTERS DIGITS))
		return false;
	while (s < end && *s == ':') { /* and further hosts behind a comma */
		size_t n = span(s + 1, end, DIGITS);

		if (!n)
			return false;
		s += 1 + n;
		*told = true;
		if (s < end && *s == ',')
			s += span(s, end, LETTERS DIGITS "_.-[],*");
	}
	for (s += span(s, end, " \t"); s < end && *s != '#'; s += span(s, end, " \t")) {
		size_t key = span(s, end, LETTERS "_-");

		if (!key || s + key == end || s[key] != '=')
			return false;
		*told |= begins(s, (size_t)(end - s), "slots=");
		while (s < end && *s != ' ' && *s != '\t')
			s++;
	}
	return true;
}

static const char *see_hosts(struct ap_ctx *ctx, const char *text, const char *end)
{
	const char *at = text;
	bool any = false, told = false, numbered = true, line;
	struct line l;

	(void)ctx;
	while (next_line(&at, end, "#", &l)) {
		if (!is_hosts(&l, &line))
			return NULL;
		any = true;
		told |= line;
		numbered &= span(l.s, l.s + l.len, LETTERS "_-") < l.len; /* a lone word is no host */
	}
	return !any || (!told && !numbered) ? NULL
		: "is a hostfile, of MPI, DeepSpeed or Slurm, which says the servers of a machine; " MACHINE;
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
static const struct row {
	const char *(*see)(struct ap_ctx *ctx, const char *text, const char *end);
	bool binary; /* control characters do not rule it out */
	enum ap_machine_text machine;
} rows[] = {
	{see_packed, true, AP_TEXT_OTHER},
	{see_nccl, true, AP_TEXT_NCCL_XML},
	{see_xml, false, AP_TEXT_OTHER},
	{see_matrix, false, AP_TEXT_LINK_MATRIX},
	{see_addresses, false, AP_TEXT_OTHER},
	{see_hosts, false, AP_TEXT_HOSTS},
	{see_ini, false, AP_TEXT_OTHER},
	{see_yaml, false, AP_TEXT_OTHER},
};

/* The row of a text and what it says; NULL if there is none. */
static const struct row *find_row(struct ap_ctx *ctx, const char *text, size_t len, const char **what)
{
	static const char mark[] = "\xef\xbb\xbf";
	const char *end = text + len;
	bool text_only = true;

	*what = NULL;
	if (begins(text, len, mark))
		text += strlen(mark);
	for (const char *s = text; s < end && text_only; s++)
		text_only = (unsigned char)*s >= 0x20 || *s == '\t' || *s == '\n' || *s == '\r' ||
			*s == '\x1b';
	for (size_t i = 0; i < AP_COUNT(rows); i++) {
		if (rows[i].binary || text_only)
			*what = rows[i].see(ctx, text, end);
		if (*what)
			return &rows[i];
	}
	return NULL;
}

const char *ap_foreign(struct ap_ctx *ctx, const char *text, size_t len)
{
	const char *what;

	(void)find_row(ctx, text, len, &what);
	return what;
}

enum ap_machine_text ap_foreign_machine(struct ap_ctx *ctx, const char *text, size_t len)
{
	const char *what;
	const struct row *row = find_row(ctx, text, len, &what);

	return row ? row->machine : AP_TEXT_OTHER;
}
