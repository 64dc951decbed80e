/* SPDX-License-Identifier: Apache-2.0 */
#include "hw/link_curve.h"

#include <ctype.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/arena.h"
#include "base/csv.h"
#include "base/diag.h"
#include "base/fit.h"
#include "base/num.h"
#include "base/sha256.h"
#include "base/str.h"
#include "base/vec.h"
#include "hw/coll.h"
#include "hw/constant.h"
#include "hw/group.h"
#include "hw/profile_write.h"
#include "hw/topo.h"

enum { FIELDS = 16, LONGEST = 1024, DIGITS = 3 };
enum { MOST_RANKS = 1 << 16 }; /* more than anybody measures; a machine of them is made to fit the curve */

static const double most_s = 1e6;

/* Collectives as the programs and tables name them. */
static const struct { const char *name; enum ap_coll coll; } names[] = {
	{"all_reduce", AP_COLL_ALLREDUCE}, {"allreduce", AP_COLL_ALLREDUCE},
	{"all_gather", AP_COLL_ALLGATHER}, {"allgather", AP_COLL_ALLGATHER},
	{"reduce_scatter", AP_COLL_REDUCESCATTER}, {"reducescatter", AP_COLL_REDUCESCATTER},
	{"alltoall", AP_COLL_ALLTOALL}, {"all_to_all", AP_COLL_ALLTOALL},
};

/* ---- what programs print ---- */

struct reading {
	struct ap_ctx *ctx;
	struct ap_link_curves *out;
	int64_t line;
	/* Said in front of the next table. */
	enum ap_coll coll; /* AP_COLL_COUNT: not yet */
	int64_t ranks, listed; /* of the command; in the list of devices */
	const char *hosts[64]; /* of the list */
	int nhost;
	struct ap_link_curve *curve; /* whose lines are read; NULL: none is */
};

static enum ap_status fault(struct ap_ctx *ctx, const char *file, int64_t line, const char *text)
{
	return ap_diag_add(ctx->diag, AP_ERROR, AP_MEANING, &(struct ap_where){.file = file, .line = line},
		"link-curve", "%s", text);
}

/* The collective of a word such as "all_reduce_perf" in a line; AP_COLL_COUNT: there is none. */
static enum ap_coll named_coll(const char *line)
{
	static const char *const ends[] = {"_perf", "_test"};

	for (size_t i = 0; i < AP_COUNT(names); i++)
		for (const char *at = line; (at = strstr(at, names[i].name)); at++)
			for (size_t k = 0; k < AP_COUNT(ends); k++)
				if (!strncmp(at + strlen(names[i].name), ends[k], strlen(ends[k])))
					return names[i].coll;
	return AP_COLL_COUNT;
}

/* A whole number above 0 behind an option of a command; 0: the option is not there. */
static int64_t option(const char *line, const char *name)
{
	const char *at = strstr(line, name);
	long n = at ? strtol(at + strlen(name), NULL, 10) : 0;

	return n > 0 && n <= AP_MAX_DEVICES ? n : 0;
}

static void read_command(struct reading *r, const char *line)
{
	enum ap_coll coll = named_coll(line);
	int64_t all = option(line, " -np ") ? option(line, " -np ") : option(line, "mpirun -n ");
	int64_t each = option(line, " -g ") ? option(line, " -g ") : 1;

	if (coll == AP_COLL_COUNT)
		return;
	r->curve = NULL;
	r->coll = coll;
	if (strstr(line, "_test"))
		r->ranks = all ? all : option(line, " -p ");
	else if (all || option(line, " -g "))
		r->ranks = (all ? all : 1) * each;
	r->listed = r->nhost = 0;
}

/* "#  Rank  0 Group  0 Pid 3077 on host device  0 [0x07] NVIDIA A100-SXM4-80GB" */
static void read_device(struct reading *r, const char *line)
{
	const char *host = strstr(line, " on "), *name;
	int i = 0;

	if (r->curve)
		r->listed = r->nhost = 0;
	r->curve = NULL;
	r->listed++;
	if (!host)
		return;
	host += strlen(" on ");
	host += strspn(host, " ");
	name = ap_arena_strndup(r->ctx->arena, host, strcspn(host, " "));
	while (i < r->nhost && strcmp(r->hosts[i], name) != 0)
		i++;
	if (i == r->nhost && i < (int)AP_COUNT(r->hosts))
		r->hosts[r->nhost++] = name;
}

/* Words of a line, blanks and bars between them. */
static size_t split(char *line, char **field)
{
	size_t n = 0;

	for (line += strspn(line, " |"); *line && n < FIELDS; line += strspn(line, " |")) {
		field[n++] = line;
		line += strcspn(line, " |");
		if (*line)
			*line++ = '\0';
	}
	return n;
}

static bool read_number(const char *s, double *v)
{
	return ap_parse_double(s, v) && *v > 0 && *v < 1e18;
}

/* Ranks of which a bus bandwidth is so many times the bandwidth of the algorithm; 0: it cannot be told. */
static int64_t ranks_of(enum ap_coll coll, double times)
{
	double n = coll == AP_COLL_ALLREDUCE ? 2 / (2 - times) : 1 / (1 - times);

	return isfinite(n) && n > 1.5 && n < 1e5 && fabs(n / round(n) - 1) < 0.02 ? llround(n) : 0;
}

static void begin_curve(struct reading *r)
{
	struct ap_link_curve c = {.coll = r->coll, .ranks = r->listed ? r->listed : r->ranks,
		.servers = r->nhost, .line = r->line};

	AP_PUSH(r->ctx->arena, r->out->all, c);
	r->curve = &r->out->all.v[r->out->all.n - 1];
	r->coll = AP_COLL_COUNT;
}

static void add_point(struct reading *r, double bytes, double time_s)
{
	if (time_s < most_s)
		AP_PUSH(r->ctx->arena, r->curve->points, ((struct ap_link_point){bytes, time_s}));
}

/* "size count type redop root time algbw busbw #wrong .." of nccl-tests. */
static bool read_nccl(struct reading *r, char *const *f, size_t n)
{
	double bytes, us, alg, bus = 0;

	if (n < 8 || !isalpha((unsigned char)f[2][0]) || !read_number(f[0], &bytes) ||
		!read_number(f[5], &us))
		return false;
	if (!r->curve)
		begin_curve(r);
	if (read_number(f[6], &alg) && alg >= 1 && read_number(f[7], &bus)) { /* else too coarse */
		if (r->curve->coll == AP_COLL_COUNT)
			r->curve->coll = bus / alg > 0.999 ? AP_COLL_ALLREDUCE
				: strcmp(f[3], "none") != 0 ? AP_COLL_REDUCESCATTER : AP_COLL_COUNT;
		if (!r->curve->ranks && r->curve->coll != AP_COLL_COUNT)
			r->curve->ranks = ranks_of(r->curve->coll, bus / alg);
	}
	add_point(r, bytes, us * 1e-6);
	return true;
}

/* "data_size(Bytes): | aveg_time(us): | alg_bandwidth(GB/s): | check_result:" of hccl_test: the size is that
 * of a rank where the bandwidth says so. */
static bool read_hccl(struct reading *r, char *const *f, size_t n)
{
	double bytes, us, alg;

	if (n != 4 || !isalpha((unsigned char)f[3][0]) || !read_number(f[0], &bytes) ||
		!read_number(f[1], &us) || !read_number(f[2], &alg))
		return false;
	if (!r->curve)
		begin_curve(r);
	if (r->curve->ranks && alg * us * 1e3 > 1.5 * bytes)
		bytes *= (double)r->curve->ranks;
	add_point(r, bytes, us * 1e-6);
	return true;
}

static void read_line(struct reading *r, const char *at, size_t len)
{
	char line[LONGEST], *field[FIELDS];
	size_t n = len < LONGEST - 1 ? len : LONGEST - 1, words;

	memcpy(line, at, n);
	line[n] = '\0';
	for (size_t i = 0; i < n; i++)
		if (!isprint((unsigned char)line[i]))
			line[i] = ' ';
	read_command(r, line);
	if (line[0] == '#') {
		if (strstr(line, "Rank ") && strstr(line, "Pid "))
			read_device(r, line);
		return;
	}
	words = split(line, field);
	if (!read_nccl(r, field, words))
		(void)read_hccl(r, field, words);
}

/* ---- tables ---- */

enum column { COLLECTIVE, RANKS, SERVERS, BYTES, TIME_US, TIME_S, BUSBW, COLUMNS };

static const char *const column_names[COLUMNS] = {"collective", "ranks", "servers", "bytes", "time_us",
	"time_s", "busbw_GBps"};

static int column_of(const char *name)
{
	for (int c = 0; c < COLUMNS; c++)
		if (!strcasecmp(name, column_names[c]))
			return c;
	return COLUMNS;
}

/* Seconds that a bus bandwidth says. */
static double busbw_s(enum ap_coll coll, double ranks, double bytes, double GBps)
{
	return (coll == AP_COLL_ALLREDUCE ? 2 : 1) * (ranks - 1) / ranks * bytes / (GBps * 1e9);
}

static enum ap_status read_record(struct ap_ctx *ctx, struct ap_link_curves *out, const int *of,
	const struct ap_csv_record *row)
{
	double v[COLUMNS] = {0}, time_s;
	enum ap_coll coll = AP_COLL_ALLREDUCE;
	size_t k = 0;

	for (size_t i = 0; i < row->n; i++) {
		if (of[i] == COLLECTIVE) {
			size_t name = 0;

			while (name < AP_COUNT(names) && strcasecmp(row->field[i], names[name].name) != 0)
				name++;
			if (name == AP_COUNT(names))
				return fault(ctx, out->file, row->line,
					"the collective is none of all_reduce, "
					"all_gather, reduce_scatter and alltoall");
			coll = names[name].coll;
		} else if (of[i] < COLUMNS && *row->field[i] && !read_number(row->field[i], &v[of[i]])) {
			return fault(ctx, out->file, row->line, ap_arena_printf(ctx->arena,
				"expected a number above 0 under %s", column_names[of[i]]));
		}
	}
	if (!(v[RANKS] >= 2) || v[RANKS] > AP_MAX_DEVICES || !(v[BYTES] > 0) || v[SERVERS] > v[RANKS])
		return fault(ctx, out->file, row->line,
			"expected two ranks or more on no more servers, and bytes");
	time_s = v[TIME_S] > 0 ? v[TIME_S] : v[TIME_US] > 0 ? v[TIME_US] * 1e-6
		: v[BUSBW] > 0 ? busbw_s(coll, v[RANKS], v[BYTES], v[BUSBW]) : 0;
	if (!(time_s > 0) || time_s > most_s)
		return fault(ctx, out->file, row->line, "expected a time: time_us, time_s or busbw_GBps");
	while (k < out->all.n && (out->all.v[k].coll != coll || out->all.v[k].ranks != (int64_t)v[RANKS] ||
		out->all.v[k].servers != (int64_t)v[SERVERS]))
		k++;
	if (k == out->all.n)
		AP_PUSH(ctx->arena, out->all, ((struct ap_link_curve){.coll = coll, .ranks =
			(int64_t)v[RANKS],
			.servers = (int64_t)v[SERVERS], .line = row->line}));
	AP_PUSH(ctx->arena, out->all.v[k].points, ((struct ap_link_point){v[BYTES], time_s}));
	return AP_OK;
}

/* Reads a table, if its header has ranks and bytes. *is: it has. */
static enum ap_status try_table(struct ap_ctx *ctx, const char *text, size_t len, struct ap_link_curves *out,
	bool *is)
{
	struct ap_ctx quiet = ap_diag_apart(ctx);
	struct ap_csv csv = ap_csv_begin(out->file, text, len);
	struct ap_csv_record row;
	bool any, ranks = false, bytes = false;
	int *of;
	size_t n;

	*is = false;
	if (ap_csv_next(&quiet, &csv, &row, &any) != AP_OK || !any)
		return AP_OK;
	n = row.n;
	of = AP_NEW_N(ctx->arena, int, n);
	for (size_t i = 0; i < n; i++) {
		of[i] = column_of(row.field[i]);
		ranks = ranks || of[i] == RANKS;
		bytes = bytes || of[i] == BYTES;
	}
	*is = ranks && bytes;
	while (*is) {
		AP_TRY(ap_csv_next(ctx, &csv, &row, &any));
		if (!any)
			break;
		if (row.n != n)
			return fault(ctx, out->file, row.line, "has not as many fields as the first line");
		AP_TRY(read_record(ctx, out, of, &row));
	}
	return AP_OK;
}

enum ap_status ap_link_curves_read(struct ap_ctx *ctx, const char *file, const char *text, size_t len,
	struct ap_link_curves *out)
{
	struct reading r = {.ctx = ctx, .out = out, .coll = AP_COLL_COUNT};
	bool is_table;

	*out = (struct ap_link_curves){.file = file};
	AP_TRY(try_table(ctx, text, len, out, &is_table));
	for (const char *at = text, *end = text + len; !is_table && at < end;) {
		const char *nl = memchr(at, '\n', (size_t)(end - at));

		r.line++;
		if (nl) /* the last line may be cut */
			read_line(&r, at, (size_t)(nl - at));
		at = nl ? nl + 1 : end;
	}
	for (size_t i = 0; i < out->all.n; i++) {
		const struct ap_link_curve *c = &out->all.v[i];

		if (c->coll == AP_COLL_COUNT)
			return fault(ctx, file, c->line,
				"does not say which collective was measured; expected "
				"the command line before it, such as \"all_gather_perf -g 8\"");
		if (c->ranks > MOST_RANKS)
			return fault(ctx, file, c->line, ap_arena_printf(ctx->scratch,
				"says that %" PRId64 " ranks took part; expected at most %d", c->ranks,
				MOST_RANKS));
		if (c->ranks < 2 || c->servers > c->ranks)
			return fault(ctx, file, c->line,
				"does not say how many ranks took part; expected the "
				"command line before it, such as \"mpirun -n 8 all_reduce_test -p 8\"");
	}
	return out->all.n ? AP_OK : fault(ctx, file, 0,
		"holds no measured collective; expected what nccl-tests "
		"or hccl_test print, or a CSV with columns ranks, bytes and time_us");
}

/* ---- a chip as they say ---- */

struct fitting {
	struct ap_ctx *ctx;
	const struct ap_link_curves *curves;
	const struct ap_topo **topo; /* [curves] */
	struct ap_chip chip;
	const struct ap_constant *number[AP_FIT_MOST];
	size_t nnumber;
};

static enum ap_status predict(void *user, const double *values, double *predicted)
{
	struct fitting *f = user;
	struct ap_ctx own = *f->ctx;
	size_t n = 0;

	own.arena = ap_arena_create_like(f->ctx->arena);
	for (size_t i = 0; i < f->nnumber; i++)
		ap_constant_set(f->number[i], values[i]);
	for (size_t i = 0; i < f->curves->all.n; i++) {
		const struct ap_link_curve *c = &f->curves->all.v[i];
		const struct ap_machine *m;
		struct ap_axes axes = {0};
		struct ap_group group;

		if (ap_machine_make(&own, f->topo[i], &f->chip, &m) != AP_OK)
			break; /* it could be made before */
		ap_axes_add(&axes, (struct ap_axis){1, (int32_t)c->ranks});
		ap_group_make(own.arena, m, &axes, &group);
		for (size_t k = 0; k < c->points.n; k++)
			predicted[n++] = ap_coll_time_s(m, c->coll, &group, c->points.v[k].bytes, NULL);
	}
	ap_arena_destroy(own.arena);
	return AP_OK;
}

static enum ap_status make_topos(struct fitting *f)
{
	f->topo = AP_NEW_N(f->ctx->arena, const struct ap_topo *, f->curves->all.n);
	for (size_t i = 0; i < f->curves->all.n; i++) {
		const struct ap_link_curve *c = &f->curves->all.v[i];
		int64_t full = f->chip.server_devices;
		int64_t each = c->servers ? (c->ranks + c->servers - 1) / c->servers
			: c->ranks < full ? c->ranks : full;
		const struct ap_machine *m;

		if (each > full)
			return fault(f->ctx, f->curves->file, c->line, ap_arena_printf(f->ctx->arena,
				"has %" PRId64 " ranks on %" PRId64 " servers, of which one has %" PRId64
				" devices of %s", c->ranks, c->servers, full, f->chip.name));
		AP_TRY(ap_topo_make(f->ctx, c->ranks, each, &f->topo[i]));
		AP_TRY(ap_machine_make(f->ctx, f->topo[i], &f->chip, &m));
	}
	return AP_OK;
}

/* Latency and efficiency of all levels, and the start of a call: which curves show them the fit finds out. */
static void choose_numbers(struct fitting *f)
{
	struct ap_constant *list;
	size_t n = ap_chip_constants(f->ctx->arena, &f->chip, &list);

	for (size_t i = 0; i < n && f->nnumber < AP_FIT_MOST; i++)
		if ((!strncmp(list[i].path, "levels.", strlen("levels.")) && list[i].to > 0) ||
			!strcmp(list[i].path, "fixed_s.collective"))
			f->number[f->nnumber++] = &list[i];
}

static double rounded(double value)
{
	char text[32];

	snprintf(text, sizeof text, "%.*e", DIGITS - 1, value);
	return ap_strtod(text, NULL);
}

/* Adds the curves themselves, in the places of those of the same groups. *worst: by what one is off its
 * points in the mean. */
static void add_curves(struct fitting *f, double *worst)
{
	struct ap_arena *arena = f->ctx->arena;
	int n = f->chip.ncurve;
	struct ap_curve *all = AP_NEW_N(arena, struct ap_curve, (size_t)n + f->curves->all.n + 1);

	if (n)
		memcpy(all, f->chip.curve, (size_t)n * sizeof *all);
	for (size_t i = 0; i < f->curves->all.n; i++) {
		const struct ap_link_curve *c = &f->curves->all.v[i];
		struct ap_curve_point *v = AP_NEW_N(arena, struct ap_curve_point, c->points.n + 1);
		struct ap_curve curve = {.coll = (int)c->coll, .ranks = c->ranks,
			.servers = f->topo[i]->nserver};
		int at = 0;

		for (size_t k = 0; k < c->points.n; k++)
			v[k] = (struct ap_curve_point){c->points.v[k].bytes, c->points.v[k].time_s};
		while (at < n && !ap_curve_is_like(&all[at], &curve))
			at++;
		if (c->points.n < 2 || c->points.n > AP_MOST_CURVE_POINTS || at == AP_MOST_CURVES ||
			curve.ranks % curve.servers)
			continue;
		ap_curve_set(arena, v, c->points.n, &curve);
		if (curve.npoint < 2)
			continue;
		curve.source = ap_arena_printf(arena, "measured: %s", f->curves->file);
		all[at] = curve;
		n += at == n;
		*worst = fmax(*worst, ap_curve_off(&curve));
	}
	f->chip.curve = all;
	f->chip.ncurve = n;
}

/* Gives the chip its new numbers and curves, with their source, and the hash of its text. */
static const struct ap_chip *finish(struct fitting *f, const struct ap_fit_constant *was, const double *value,
	size_t points, double *worst)
{
	struct ap_arena *arena = f->ctx->arena;
	struct ap_chip *out;
	struct ap_str text;
	char *hex = ap_arena_alloc(arena, AP_SHA256_HEX + 1, 1);

	for (size_t i = 0; i < f->nnumber; i++) {
		bool moved = fabs(log(value[i] / was[i].value)) > 1e-4;

		ap_constant_set(f->number[i], moved ? rounded(value[i]) : was[i].value);
		if (moved)
			f->chip.sources = ap_sources_with(arena, f->chip.sources, f->number[i]->path,
				ap_arena_printf(arena,
				"fitted to %zu points of measured runs of collectives: %s",
				points, f->curves->file));
	}
	add_curves(f, worst);
	out = ap_arena_memdup(arena, &f->chip, sizeof f->chip);
	ap_str_init(&text, arena);
	ap_chip_write(out, &text);
	ap_sha256_hex(text.s, text.len, hex);
	out->sha256 = hex;
	return out;
}

/* A share in tenths of per cent, in any locale. */
static const char *percent(struct ap_arena *arena, double share)
{
	long tenths = lround(fmin(share, 1e6) * 1000);

	return ap_arena_printf(arena, "%ld.%ld %%", tenths / 10, tenths % 10);
}

enum ap_status ap_link_curves_chip(struct ap_ctx *ctx, const struct ap_link_curves *curves,
	const struct ap_chip *chip, const struct ap_chip **out)
{
	static const double stay = 1e-3; /* of a point's error: for what no curve shows */
	struct fitting f = {.ctx = ctx, .curves = curves, .chip = *chip};
	struct ap_fit_constant constants[AP_FIT_MOST];
	struct ap_fit_result result;
	struct ap_fit problem = {.constant = constants, .predict = predict, .user = &f};
	double *measured, worst = 0;
	size_t n = 0;

	f.chip.ncurve = 0; /* links are fitted to all points */
	AP_TRY(make_topos(&f));
	choose_numbers(&f);
	for (size_t i = 0; i < curves->all.n; i++)
		n += curves->all.v[i].points.n;
	measured = AP_NEW_N(ctx->arena, double, n);
	for (size_t i = 0; i < curves->all.n; i++)
		for (size_t k = 0; k < curves->all.v[i].points.n; k++)
			measured[problem.nrow++] = curves->all.v[i].points.v[k].time_s;
	for (size_t i = 0; i < f.nnumber; i++)
		constants[i] = (struct ap_fit_constant){f.number[i]->from, f.number[i]->to,
			fmin(fmax(ap_constant_get(f.number[i]), f.number[i]->from), f.number[i]->to), stay};
	problem.nconstant = f.nnumber;
	problem.measured = measured;
	AP_TRY(ap_fit_least(ctx, &problem, &result));
	f.chip.curve = chip->curve;
	f.chip.ncurve = chip->ncurve;
	*out = finish(&f, constants, result.value, n, &worst);
	return ap_diag_add(ctx->diag, AP_NOTE, AP_OK, &(struct ap_where){.file = curves->file}, "link-curve",
		"%zu points of %zu curves; links of %s are %s off them in the mean now, %s before; groups "
		"that were measured take as long as their curves, at most %s off their points in the mean", n,
		curves->all.n, chip->name, percent(ctx->arena, result.error),
		percent(ctx->arena, result.before), percent(ctx->arena, worst));
}
