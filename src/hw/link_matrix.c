/* SPDX-License-Identifier: Apache-2.0 */
#include "hw/link_matrix.h"

#include <inttypes.h>
#include <stdarg.h>
#include <string.h>

#include "base/arena.h"
#include "base/diag.h"
#include "base/file.h"
#include "base/num.h"
#include "base/vec.h"
#include "hw/device.h"
#include "hw/topo.h"

/* Words of the matrix; NV with a number behind is its own. "X" is a device itself. */
static const struct {
	const char *word;
	enum ap_near near;
} words[] = {
	{"HCCS", AP_NEAR_LINK},
	{"HCCS_SW", AP_NEAR_LINK},
	{"SIO", AP_NEAR_LINK},
	{"PIX", AP_NEAR_SWITCH},
	{"PXB", AP_NEAR_SWITCH},
	{"PHB", AP_NEAR_HOST},
	{"NODE", AP_NEAR_HOST},
	{"SYS", AP_NEAR_SYSTEM},
	{"SOC", AP_NEAR_SYSTEM}, /* of nvidia-smi until 2016 */
};

/* Two processors are joined as NCCL counts on where it does not know them. */
static const double processor_Bps = 6e9;

struct word { /* of a line */
	const char *s;
	size_t len;
};

struct matrix_reading {
	struct ap_ctx *ctx;
	const char *path;
	const char *at, *end; /* of the text that is left */
	const char *start; /* of the line */
	int64_t line; /* number of the line that was read last */
	AP_VEC(struct word) word; /* its words */
	bool npu;
	uint32_t ndev, ncol; /* devices; columns of devices and cards */
	uint32_t *device; /* [ncol] device of a column; AP_NONE: a card */
	uint8_t *near;
	uint16_t *links;
	bool *has_row; /* [ndev] */
	bool *near_card; /* [ncol] a card that shares a switch with a device */
};

/* Reports a fault of a word of the line. */
__attribute__((format(printf, 3, 4)))
static enum ap_status fault(const struct matrix_reading *r, size_t word, const char *fmt, ...)
{
	const struct ap_where where = {.file = r->path, .line = r->line,
		.col = word < r->word.n ? r->word.v[word].s - r->start + 1 : 0};
	enum ap_status st;
	va_list ap;

	va_start(ap, fmt);
	st = ap_diag_addv(r->ctx->diag, AP_ERROR, AP_SYNTAX, &where, "topology-matrix", fmt, ap);
	va_end(ap);
	return st;
}

static const char *shown(const struct matrix_reading *r, size_t word)
{
	return ap_diag_name(r->ctx->diag,
		ap_arena_strndup(r->ctx->arena, r->word.v[word].s, r->word.v[word].len));
}

/* The next line, as words between blanks; what colours it on a terminal (ESC [ .. m) counts as a blank. */
static bool next_line(struct matrix_reading *r)
{
	const char *s = r->at, *nl;

	if (s == r->end)
		return false;
	nl = memchr(s, '\n', (size_t)(r->end - s));
	nl = nl ? nl : r->end;
	r->start = s;
	r->line++;
	r->word.n = 0;
	while (s < nl) {
		struct word w = {.s = s};

		while (s < nl && *s != ' ' && *s != '\t' && *s != '\r' && *s != '\x1b')
			s++;
		w.len = (size_t)(s - w.s);
		if (w.len)
			AP_PUSH(r->ctx->arena, r->word, w);
		if (s < nl && *s == '\x1b')
			while (s + 1 < nl && !((*s >= 'a' && *s <= 'z') || (*s >= 'A' && *s <= 'Z')))
				s++;
		s += s < nl;
	}
	r->at = nl < r->end ? nl + 1 : nl;
	return true;
}

static bool is_word(const struct word *w, const char *text)
{
	return w->len == strlen(text) && !memcmp(w->s, text, w->len);
}

/* Number of a device: 3 of "GPU3". */
static bool device_number(const struct word *w, const char *kind, int64_t *out)
{
	char digits[8] = "";

	if (w->len <= strlen(kind) || w->len - strlen(kind) >= sizeof digits || memcmp(w->s, kind,
		strlen(kind)) != 0)
		return false;
	memcpy(digits, w->s + strlen(kind), w->len - strlen(kind));
	return ap_parse_int(digits, 0, AP_MAX_DEVICES, out);
}

static bool word_begins(const struct word *w, const char *text)
{
	return w->len >= strlen(text) && !memcmp(w->s, text, strlen(text));
}

/* Is it the head: GPU0, and behind it another column, which no row has there? */
static bool is_head(const struct matrix_reading *r, const char *kind)
{
	int64_t number;

	return r->word.n > 1 && device_number(&r->word.v[0], kind, &number) && number == 0 &&
		(device_number(&r->word.v[1], kind, &number) || is_word(&r->word.v[1], "CPU") ||
			word_begins(&r->word.v[1], "NIC") || word_begins(&r->word.v[1], "mlx"));
}

static enum ap_status read_head(struct matrix_reading *r)
{
	const char *kind = r->npu ? "NPU" : "GPU";
	size_t last = 0;

	while (last < r->word.n && !is_word(&r->word.v[last], "CPU") && !is_word(&r->word.v[last], "NUMA"))
		last++;
	r->ncol = (uint32_t)last;
	r->device = AP_NEW_N(r->ctx->arena, uint32_t, r->ncol);
	for (uint32_t c = 0; c < r->ncol; c++) {
		int64_t number;

		r->device[c] = AP_NONE;
		if (!device_number(&r->word.v[c], kind, &number))
			continue;
		if (number != r->ndev || c != r->ndev)
			return fault(r, c, "column %s; expected %s%" PRIu32 " here, as devices come "
				"first and count from 0", shown(r, c), kind, r->ndev);
		r->device[c] = r->ndev++;
		if (r->ndev > AP_MOST_SERVER_DEVICES)
			return ap_diag_add(r->ctx->diag, AP_ERROR, AP_LIMIT,
				&(struct ap_where){.file = r->path, .line = r->line}, "topology-matrix",
				"a server has more than %d devices", AP_MOST_SERVER_DEVICES);
	}
	r->near = AP_NEW_N(r->ctx->arena, uint8_t, (size_t)r->ndev * r->ndev);
	r->links = AP_NEW_N(r->ctx->arena, uint16_t, (size_t)r->ndev * r->ndev);
	r->has_row = AP_NEW_N(r->ctx->arena, bool, r->ndev);
	r->near_card = AP_NEW_N(r->ctx->arena, bool, r->ncol);
	return AP_OK;
}

/* What a word of the matrix says. */
static enum ap_status read_word(struct matrix_reading *r, size_t at, enum ap_near *near, uint16_t *links)
{
	const struct word *w = &r->word.v[at];
	char digits[8] = "";
	int64_t count;

	*links = 0;
	for (size_t i = 0; i < AP_COUNT(words); i++)
		if (is_word(w, words[i].word)) {
			*near = words[i].near;
			*links = words[i].near == AP_NEAR_LINK;
			return AP_OK;
		}
	if (w->len > 2 && w->len - 2 < sizeof digits && !memcmp(w->s, "NV", 2)) {
		memcpy(digits, w->s + 2, w->len - 2);
		if (ap_parse_int(digits, 1, 1024, &count)) {
			*near = AP_NEAR_LINK;
			*links = (uint16_t)count;
			return AP_OK;
		}
	}
	return fault(r, at, "\"%s\" says nothing of links; expected X, NV and a number, HCCS, "
		"HCCS_SW, SIO, PIX, PXB, PHB, NODE or SYS", shown(r, at));
}

static enum ap_status read_row(struct matrix_reading *r, uint32_t row)
{
	uint32_t n = r->ndev;

	if (r->has_row[row])
		return fault(r, 0, "row %s stands twice", shown(r, 0));
	r->has_row[row] = true;
	if (r->word.n < (size_t)r->ncol + 1)
		return fault(r, 0, "row %s has %zu words behind its name; expected one for each of "
			"%" PRIu32 " columns", shown(r, 0), r->word.n - 1, r->ncol);
	for (uint32_t c = 0; c < r->ncol; c++) {
		uint32_t other = r->device[c];
		enum ap_near near = AP_NEAR_LINK;
		uint16_t links = 0;

		if (is_word(&r->word.v[c + 1], "X") != (other == row))
			return fault(r, c + 1, "\"%s\" in row %s; X stands where a device meets "
				"itself", shown(r, c + 1), shown(r, 0));
		if (other == row)
			continue;
		AP_TRY(read_word(r, c + 1, &near, &links));
		if (other == AP_NONE) {
			r->near_card[c] |= near == AP_NEAR_SWITCH;
			continue;
		}
		if (r->has_row[other] && (r->near[other * n + row] != near ||
			r->links[other * n + row] != links))
			return fault(r, c + 1, "\"%s\" in row %s; the row of that column says "
				"otherwise", shown(r, c + 1), shown(r, 0));
		r->near[row * n + other] = (uint8_t)near;
		r->links[row * n + other] = links;
	}
	return AP_OK;
}

/* Cards are those that share a switch with a device, if any do. */
static uint32_t count_cards(const struct matrix_reading *r)
{
	uint32_t near = 0;

	for (uint32_t c = 0; c < r->ncol; c++)
		near += r->near_card[c];
	return near ? near : r->ncol - r->ndev;
}

static enum ap_status read_matrix(struct matrix_reading *r)
{
	const char *kind;
	int64_t row;

	while (next_line(r))
		if (is_head(r, "GPU") || (r->npu = is_head(r, "NPU")))
			break;
	if (!r->word.n || !(is_head(r, "GPU") || r->npu))
		return fault(r, 0, "has no line that begins with GPU0 or NPU0, the head of a matrix "
			"of links");
	kind = r->npu ? "NPU" : "GPU";
	AP_TRY(read_head(r));
	while (next_line(r))
		if (r->word.n && device_number(&r->word.v[0], kind, &row)) {
			if (row >= r->ndev)
				return fault(r, 0, "row %s; there is no such column", shown(r, 0));
			AP_TRY(read_row(r, (uint32_t)row));
		}
	for (uint32_t i = 0; i < r->ndev; i++)
		if (!r->has_row[i])
			return ap_diag_add(r->ctx->diag, AP_ERROR, AP_SYNTAX,
				&(struct ap_where){.file = r->path},
				"topology-matrix", "row %s%" PRIu32 " is missing", kind, i);
	return AP_OK;
}

enum ap_status ap_server_read_matrix(struct ap_ctx *ctx, const char *path, const char *text, size_t len,
	const struct ap_server **out)
{
	struct ap_server *s = AP_NEW(ctx->arena, struct ap_server);
	struct matrix_reading r = {.ctx = ctx, .path = path, .at = text, .end = text + len};
	const struct ap_device *device = ap_device_in_text(text, len);

	AP_TRY(read_matrix(&r));
	*s = (struct ap_server){
		.name = ap_file_base(path),
		.form = r.npu ? "npu-smi info -t topo" : "nvidia-smi topo -m",
		.ndev = r.ndev,
		.chip = device ? device->profile : "",
		.generation = device ? device->generation : 0,
		.near = r.near,
		.links = r.links,
		.direct = r.npu ? "hccs" : "nvlink",
		.processor_Bps = processor_Bps,
		.ncard = count_cards(&r),
	};
	*out = s;
	return AP_OK;
}
