/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Between the parsers of the rank-table forms and what all forms have in common. A parser lists
 * servers and cards as they come, and checks what only its form has; ap_rank_table_finish() checks
 * the rest and makes the topology.
 */
#ifndef AP_HW_RANK_TABLE_H
#define AP_HW_RANK_TABLE_H

#include "hw/topo.h"

#define AP_MINDSPORE_DEVICES 4096 /* the most that MindSpore itself runs */

struct ap_card {
	int64_t rank, device_id;
	uint32_t server;        /* index into the table's servers */
	const char *ip;         /* as written; "" where there is none */
	const struct ap_jv *at; /* where messages about it point to */
};

struct ap_rank_table {
	struct ap_ctx *ctx;
	const struct ap_json *doc;
	const struct ap_jv *root;
	const char *form, *chip_info;
	bool job_wide_ids;     /* device_id may count over the whole job */
	enum ap_status status; /* of the first fault; reading goes on to find the others */
	struct {
		struct ap_card *v;
		size_t n, cap;
	} cards;
	struct {
		const char **v; /* ids */
		size_t n, cap;
	} servers;
};

/* A form: recognised by its version (NULL: it has none), a key that it has and one that it lacks.
 * parse NULL: known by name only. */
struct ap_rank_form {
	const char *name, *version, *has, *lacks;
	void (*parse)(struct ap_rank_table *t);
};

void ap_rank_table_parse_lab(struct ap_rank_table *t);
void ap_rank_table_parse_1_0(struct ap_rank_table *t);

/* Reports a fault at v and notes it in t->status. */
void ap_rank_table_fault(struct ap_rank_table *t, const struct ap_jv *v, const char *check,
	const char *fmt, ...) __attribute__((format(printf, 4, 5)));

/* Reports what is odd but can be read. */
void ap_rank_table_warn(struct ap_rank_table *t, const struct ap_jv *v, const char *check,
	const char *fmt, ...) __attribute__((format(printf, 4, 5)));

/* A member that is an integer in [lo, hi], written as number or as decimal digits in a string.
 * Reports and returns false where it is not; absent counts as a fault unless optional (then *r
 * stays as it is). */
bool ap_rank_table_int(struct ap_rank_table *t, const struct ap_jv *obj, const char *key,
	int64_t lo, int64_t hi, bool optional, int64_t *r);

/* A member that is a non-empty array; NULL, with a report, where it is not. */
const struct ap_jv *ap_rank_table_list(
	struct ap_rank_table *t, const struct ap_jv *obj, const char *key);

/* Faults where the member `key` of obj is there and differs from n, the number of `what`. */
void ap_rank_table_count(struct ap_rank_table *t, const struct ap_jv *obj, const char *key,
	size_t n, const char *what);

/* Server id of obj, 1 to 64 bytes, an integer as its digits; NULL, with a report, where missing. */
const char *ap_rank_table_server_id(struct ap_rank_table *t, const struct ap_jv *obj);

/* Adds a card: device_id and device_ip of device, rank_id of ranked. */
void ap_rank_table_card(struct ap_rank_table *t, const struct ap_jv *device,
	const struct ap_jv *ranked, uint32_t server);

/* Checks that every form shares, then the topology. */
enum ap_status ap_rank_table_finish(
	struct ap_rank_table *t, const char *sha256, const struct ap_topo **out);

/* Checks of the device addresses: present, IP, unique, equal in number and family. */
void ap_rank_table_check_ips(struct ap_rank_table *t);

/* Links the places of each server (next), and returns the lowest rank on each. */
const uint32_t *ap_topo_link(
	struct ap_ctx *ctx, struct ap_place *place, uint32_t ndev, uint32_t nserver);

#endif
