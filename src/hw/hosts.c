/* SPDX-License-Identifier: Apache-2.0 */
#include "hw/hosts.h"

#include <inttypes.h>
#include <stdarg.h>
#include <string.h>

#include "base/arena.h"
#include "base/diag.h"
#include "base/file.h"
#include "base/map.h"
#include "base/num.h"
#include "base/str.h"
#include "base/vec.h"

/* Most names that are made, parts of names and repeated ones included: a short text may mean very many. */
enum { MOST_DIGITS = 9, MOST_NAMES = 1 << 20, MOST_LENGTH = 255 };

struct hosts_reading {
	struct ap_ctx *ctx;
	const char *path;
	const char *start, *at, *end; /* of the line; where it is read; its end */
	int64_t line;
	struct ap_map *ids;
	AP_VEC(const char *) name;
	AP_VEC(uint32_t) slots, times; /* said; how often the host stands in the file */
	bool told; /* some line says slots */
	uint32_t made; /* names */
};

__attribute__((format(printf, 3, 4)))
static enum ap_status fault(const struct hosts_reading *r, enum ap_status st, const char *fmt, ...)
{
	const struct ap_where where = {.file = r->path, .line = r->line, .col = r->at - r->start + 1};
	va_list ap;

	va_start(ap, fmt);
	st = ap_diag_addv(r->ctx->diag, AP_ERROR, st, &where, "hosts", fmt, ap);
	va_end(ap);
	return st;
}

static bool is_in(char c, const char *set)
{
	return c && strchr(set, c);
}

/* Reads digits; *width is how many. */
static bool read_number(struct hosts_reading *r, int64_t least, int64_t *out, int *width)
{
	char digits[MOST_DIGITS + 1] = "";
	int n = 0;

	while (r->at + n < r->end && is_in(r->at[n], "0123456789") && n <= MOST_DIGITS)
		n++;
	if (!n || n > MOST_DIGITS)
		return false;
	memcpy(digits, r->at, (size_t)n);
	if (!ap_parse_int(digits, least, INT32_MAX, out)) {
		int zeros = (int)strspn(digits, "0"); /* "007" */

		if (zeros == n ? least > 0 : !ap_parse_int(digits + zeros, least, INT32_MAX, out))
			return false;
		*out = zeros == n ? 0 : *out;
	}
	r->at += n;
	if (width)
		*width = n;
	return true;
}

/* Names of hosts that one expression stands for. */
struct expanded {
	const char **v;
	size_t n, cap;
};

static enum ap_status add_name(struct hosts_reading *r, struct expanded *to, const char *name)
{
	if (++r->made > MOST_NAMES)
		return fault(r, AP_LIMIT, "names more hosts than a machine has: over 1048576 names");
	if (strlen(name) > MOST_LENGTH)
		return fault(r, AP_LIMIT, "is a host with a name of more than 255 letters");
	AP_PUSH(r->ctx->arena, *to, name);
	return AP_OK;
}

/* Appends to each name each number of a list in brackets, from behind its "[". */
static enum ap_status expand_brackets(struct hosts_reading *r, struct expanded *io)
{
	struct expanded suffix = {0}, all = {0};

	do {
		int64_t from, to;
		int width;

		r->at++;
		if (!read_number(r, 0, &from, &width))
			return fault(r, AP_SYNTAX, "expected a number of at most nine digits, as in "
				"node[01-16,20]");
		to = from;
		if (r->at < r->end && *r->at == '-') {
			r->at++;
			if (!read_number(r, 0, &to, NULL) || to < from)
				return fault(r, AP_SYNTAX, "expected a number that is not below the "
					"first, as in node[01-16]");
		}
		for (; from <= to; from++)
			AP_TRY(add_name(r, &suffix, ap_arena_printf(r->ctx->arena, "%0*" PRId64, width,
				from)));
	} while (r->at < r->end && *r->at == ',');
	if (r->at == r->end || *r->at != ']')
		return fault(r, AP_SYNTAX, "expected ] here, as in node[01-16,20]");
	r->at++;
	for (size_t i = 0; i < io->n; i++)
		for (size_t k = 0; k < suffix.n; k++)
			AP_TRY(add_name(r, &all,
				ap_arena_printf(r->ctx->arena, "%s%s", io->v[i], suffix.v[k])));
	*io = all;
	return AP_OK;
}

static bool is_name(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || is_in(c, "0123456789_.-*");
}

/* One expression: letters and brackets. */
static enum ap_status expand(struct hosts_reading *r, struct expanded *out)
{
	*out = (struct expanded){0};
	AP_TRY(add_name(r, out, ""));
	while (r->at < r->end && (is_name(*r->at) || *r->at == '[')) {
		struct expanded longer = {0};
		const char *from = r->at, *text;

		if (*r->at == '[') {
			AP_TRY(expand_brackets(r, out));
			continue;
		}
		while (r->at < r->end && is_name(*r->at))
			r->at++;
		text = ap_arena_strndup(r->ctx->arena, from, (size_t)(r->at - from));
		for (size_t i = 0; i < out->n; i++)
			AP_TRY(add_name(r, &longer,
				ap_arena_printf(r->ctx->arena, "%s%s", out->v[i], text)));
		*out = longer;
	}
	if (!*out->v[0])
		return fault(r, AP_SYNTAX, "expected the name of a host");
	return AP_OK;
}

static void skip_blanks(struct hosts_reading *r)
{
	while (r->at < r->end && (*r->at == ' ' || *r->at == '\t'))
		r->at++;
}

static bool begins(const struct hosts_reading *r, const char *word)
{
	return (size_t)(r->end - r->at) >= strlen(word) && !memcmp(r->at, word, strlen(word));
}

/* Words behind the names of a line: "slots=8"; others with "=" are passed by. */
static enum ap_status read_words(struct hosts_reading *r, int64_t *slots)
{
	if (r->at < r->end && *r->at != ' ' && *r->at != '\t')
		return fault(r, AP_SYNTAX, "does not belong to the name of a host; expected \"node1 "
			"slots=8\", \"node1:8\" or \"node[01-16]\"");
	for (skip_blanks(r); r->at < r->end; skip_blanks(r)) {
		const char *is;

		if (begins(r, "slots=")) {
			r->at += strlen("slots=");
			if (*slots || !read_number(r, 1, slots, NULL))
				return fault(r, AP_SYNTAX, "expected one number of slots, as in "
					"slots=8");
			if (r->at < r->end && *r->at != ' ' && *r->at != '\t')
				return fault(r, AP_SYNTAX, "expected one number of slots, as in "
					"slots=8");
			continue;
		}
		is = memchr(r->at, '=', (size_t)(r->end - r->at));
		for (const char *s = r->at; is && s < is; s++)
			if (*s == ' ' || *s == '\t')
				is = NULL;
		if (!is)
			return fault(r, AP_SYNTAX, "expected nothing more, or KEY=VALUE, such as "
				"slots=8");
		while (r->at < r->end && *r->at != ' ' && *r->at != '\t')
			r->at++;
	}
	return AP_OK;
}

/* own: [hosts->n] slots that stand behind each name; 0: those of the line. */
static enum ap_status add_hosts(struct hosts_reading *r, const struct expanded *hosts, const uint32_t *own,
	uint32_t of_line)
{
	for (size_t i = 0; i < hosts->n; i++) {
		uint32_t slots = own[i] ? own[i] : of_line;
		bool fresh;
		ap_id id = ap_map_put_str(r->ids, hosts->v[i], &fresh);

		if (fresh) {
			AP_PUSH(r->ctx->arena, r->name, hosts->v[i]);
			AP_PUSH(r->ctx->arena, r->slots, slots);
			AP_PUSH(r->ctx->arena, r->times, 1);
		} else {
			r->times.v[id]++;
			if (slots || r->slots.v[id])
				return fault(r, AP_MEANING, "host \"%s\" stands twice, with slots",
					ap_diag_name(r->ctx->diag, hosts->v[i]));
		}
		r->told |= slots > 0;
	}
	return AP_OK;
}

static enum ap_status read_hosts(struct hosts_reading *r)
{
	struct expanded all = {0}, one;
	AP_VEC(uint32_t) own = {0};
	int64_t last = 0, slots;

	for (;; r->at++) {
		AP_TRY(expand(r, &one));
		last = 0;
		if (r->at < r->end && *r->at == ':') {
			r->at++;
			if (!read_number(r, 1, &last, NULL))
				return fault(r, AP_SYNTAX, "expected a number of slots, as in node1:8");
		}
		for (size_t i = 0; i < one.n; i++) {
			AP_TRY(add_name(r, &all, one.v[i]));
			AP_PUSH(r->ctx->arena, own, (uint32_t)last);
		}
		if (r->at == r->end || *r->at != ',')
			break;
	}
	slots = last; /* not said again */
	AP_TRY(read_words(r, &slots));
	return add_hosts(r, &all, own.v, last ? 0 : (uint32_t)slots);
}

/* Is the line one of numbers: "8(x4),2"? */
static bool is_counts(const struct hosts_reading *r)
{
	for (const char *s = r->at; s < r->end; s++)
		if (!is_in(*s, "0123456789(x),"))
			return false;
	return true;
}

/* Slots of all hosts so far. */
static enum ap_status read_counts(struct hosts_reading *r)
{
	uint32_t n = 0;

	if (r->told)
		return fault(r, AP_MEANING, "says slots of hosts of which lines above say them; "
			"expected one of both");
	for (;; r->at++) {
		int64_t slots, times = 1;

		if (!read_number(r, 1, &slots, NULL))
			return fault(r, AP_SYNTAX, "expected numbers of slots, as in 8(x15),4");
		if (begins(r, "(x")) {
			r->at += 2;
			if (!read_number(r, 1, &times, NULL) || r->at == r->end || *r->at != ')')
				return fault(r, AP_SYNTAX, "expected how many hosts have so many "
					"slots, as in 8(x15)");
			r->at++;
		}
		for (; times && n < r->name.n; times--)
			r->slots.v[n++] = (uint32_t)slots;
		if (times)
			return fault(r, AP_MEANING, "slots of more than the %zu hosts named so far",
				r->name.n);
		if (r->at == r->end || *r->at != ',')
			break;
	}
	if (n < r->name.n)
		return fault(r, AP_MEANING, "slots of %" PRIu32 " hosts, but %zu are named above: the "
			"list is not of one job", n, r->name.n);
	r->told = true;
	return AP_OK;
}

/* What env prints of a job of Slurm: the name goes, and quotes; other variables are passed by. */
static bool take_variable(struct hosts_reading *r)
{
	static const char *const hosts[] = {"SLURM_JOB_NODELIST=", "SLURM_NODELIST=",
		"SLURM_TASKS_PER_NODE="};

	if (begins(r, "export "))
		r->at += strlen("export ");
	if (!begins(r, "SLURM_") || !memchr(r->at, '=', (size_t)(r->end - r->at)))
		return true;
	for (size_t i = 0; i < AP_COUNT(hosts); i++)
		if (begins(r, hosts[i])) {
			r->at += strlen(hosts[i]);
			if (r->end - r->at > 1 && is_in(*r->at, "'\"") && r->end[-1] == *r->at) {
				r->at++;
				r->end--;
			}
			return true;
		}
	return false;
}

/* Slots that nobody tells: of hosts that stand several times as many. */
static void count_times(struct hosts_reading *r)
{
	bool several = false;

	for (size_t i = 0; i < r->name.n; i++)
		several |= r->times.v[i] > 1;
	for (size_t i = 0; i < r->name.n && several && !r->told; i++)
		r->slots.v[i] = r->times.v[i];
}

enum ap_status ap_hosts_read(struct ap_ctx *ctx, const char *path, const char *text, size_t len,
	const char *sha256, const struct ap_hosts **out)
{
	static const char mark[] = "\xef\xbb\xbf";
	struct ap_hosts *hosts = AP_NEW(ctx->arena, struct ap_hosts);
	struct hosts_reading r = {.ctx = ctx, .path = path, .ids = ap_map_create(ctx->arena)};
	const char *next = text, *end = text + len;

	if (len >= strlen(mark) && !memcmp(text, mark, strlen(mark)))
		next += strlen(mark);
	while (next < end) {
		const char *nl = memchr(next, '\n', (size_t)(end - next)), *hash;

		r.start = r.at = next;
		r.end = nl ? nl : end;
		next = nl ? nl + 1 : end;
		r.line++;
		hash = memchr(r.at, '#', (size_t)(r.end - r.at));
		r.end = hash ? hash : r.end;
		while (r.end > r.at && is_in(r.end[-1], " \t\r"))
			r.end--;
		skip_blanks(&r);
		if (r.at == r.end || !take_variable(&r))
			continue;
		AP_TRY(is_counts(&r) ? read_counts(&r) : read_hosts(&r));
	}
	r.at = r.start;
	if (!r.name.n)
		return fault(&r, AP_MEANING, "names no host");
	count_times(&r);
	*hosts = (struct ap_hosts){path, sha256, (uint32_t)r.name.n, r.name.v, r.slots.v};
	*out = hosts;
	return AP_OK;
}

enum ap_status ap_hosts_topo(struct ap_ctx *ctx, const struct ap_hosts *hosts, int64_t per_host,
	const struct ap_topo **out)
{
	const struct ap_where where = {.file = hosts->path};
	struct ap_topo *topo = AP_NEW(ctx->arena, struct ap_topo);
	struct ap_place *place;
	uint64_t ndev = 0;
	uint32_t r = 0;

	for (uint32_t h = 0; h < hosts->n; h++) {
		if (!hosts->slots[h] && per_host < 1)
			return ap_diag_add(ctx->diag, AP_ERROR, AP_USAGE, &where, "hosts",
				"host \"%s\" has no number of slots; expected \"%s slots=8\", or "
				"--devices-per-server",
				ap_diag_name(ctx->diag, hosts->name[h]), ap_diag_name(ctx->diag,
				hosts->name[h]));
		ndev += hosts->slots[h] ? hosts->slots[h] : (uint64_t)per_host;
	}
	if (ndev > AP_MAX_DEVICES)
		return ap_diag_add(ctx->diag, AP_ERROR, AP_LIMIT, &where, "device-count",
			"%" PRIu64 " devices; expected 1 to %d", ndev, AP_MAX_DEVICES);
	*topo = (struct ap_topo){
		.name = ap_file_base(hosts->path),
		.sha256 = hosts->sha256,
		.form = "hostfile",
		.chip_info = "",
		.ndev = (uint32_t)ndev,
		.nserver = hosts->n,
		.server = hosts->name,
	};
	topo->place = place = AP_NEW_N(ctx->arena, struct ap_place, ndev);
	for (uint32_t h = 0; h < hosts->n; h++) {
		uint32_t slots = hosts->slots[h] ? hosts->slots[h] : (uint32_t)per_host;

		for (uint32_t i = 0; i < slots; i++)
			place[r++] = (struct ap_place){
				.server = h,
				.device_id = (int32_t)i,
				.super_device_id = -1,
				.device_ip = "",
			};
	}
	topo->first = ap_topo_link(ctx, place, topo->ndev, topo->nserver);
	*out = topo;
	return AP_OK;
}
