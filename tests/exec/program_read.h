/* SPDX-License-Identifier: Apache-2.0 */
/* Reading a plan file: values, layouts and groups. Shared by program_*.c and schedule.c. */
#ifndef AP_TEST_EXEC_PROGRAM_READ_H
#define AP_TEST_EXEC_PROGRAM_READ_H

#include "base/json.h"
#include "program.h"

struct ex_reader {
	struct ap_ctx *ctx;
	struct ap_json *doc;
	const char *about; /* what is being read, for `why` */
	const char *why; /* the first fault; NULL: none */
};

/* False, with a fault, where the text is no JSON object. */
bool ex_read_open(struct ex_reader *r, struct ap_ctx *ctx, const char *text, size_t len);
void ex_read_fault(struct ex_reader *r, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* Members; NULL, "" or 0, with a fault, where there is none of this type. obj may be NULL. */
const struct ap_jv *ex_read(struct ex_reader *r, const struct ap_jv *obj, const char *key,
	enum ap_jtype type);
int64_t ex_read_int(struct ex_reader *r, const struct ap_jv *obj, const char *key);
double ex_read_number(struct ex_reader *r, const struct ap_jv *obj, const char *key);
const char *ex_read_str(struct ex_reader *r, const struct ap_jv *obj, const char *key);
/* The number of one of these names, NULL at their end. */
int ex_read_word(struct ex_reader *r, const struct ap_jv *obj, const char *key,
	const char *const *names);

const struct ap_jv *ex_first(const struct ap_jv *v); /* v may be NULL */
/* Integers of an array; their number, of which at most `most` are there. */
int ex_read_ints(struct ex_reader *r, const struct ap_jv *array, int64_t *out, int most);
/* An array of so many arrays or numbers; a fault where there are others. */
void ex_read_count(struct ex_reader *r, const struct ap_jv *array, size_t n);

struct ex_matrix { /* dev_matrix */
	int n;
	int64_t axis[AP_MAX_FACTOR + 1];
};
void ex_read_matrix(struct ex_reader *r, const struct ap_jv *obj, int64_t ndev,
	struct ex_matrix *out);
/* A tensor_map: an axis, -1 or a list of axes per dimension. */
void ex_read_map(struct ex_reader *r, const struct ap_jv *map, const struct ex_matrix *m, uint8_t rank,
	struct ap_layout *out);
/* [parts, stride] per dimension. */
void ex_read_layout(struct ex_reader *r, const struct ap_jv *v, uint8_t rank, struct ap_layout *out);
/* "axes" and "ranks" of obj, which must be the group of the first of ndev ranks. */
void ex_read_group(struct ex_reader *r, const struct ap_jv *obj, int64_t first, int64_t ndev,
	struct ap_axes *out);
struct ap_axis ex_read_axis(struct ex_reader *r, const struct ap_jv *v);
/* Extents of the slice of a tensor under a layout, as `v` lists them. */
void ex_read_slice(struct ex_reader *r, const struct ap_jv *v, const struct ap_shape *shape,
	const struct ap_layout *l);

#endif
