/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Between the parsers of the rank-table forms and what all forms have in common. A parser lists
 * servers and cards as they come, and checks what only its form has; ap_rank_table_finish() checks
 * the rest and makes the topology.
 */
#ifndef AP_HW_RANK_TABLE_H
#define AP_HW_RANK_TABLE_H

#include "base/map.h"
#include "base/vec.h"
#include "hw/topo.h"

#define AP_MINDSPORE_DEVICES 4096 /* the most that MindSpore itself runs */

struct ap_card {
	int64_t rank, device_id;
	int64_t super_device_id; /* -1: none */
	uint32_t server;        /* index into the table's servers */
	const char *ip;         /* as written; "" where there is none */
	const struct ap_jv *at; /* where messages about it point to */
};

/* Super pods or clusters, while they are read. */
struct ap_rank_tier {
	const char **v; /* ids */
	size_t n, cap;
	uint32_t *of; /* [servers] index, AP_NONE before it is known; NULL: the table has no tier */
};

struct ap_rank_table {
	struct ap_ctx *ctx;
	const struct ap_json *doc;
	const struct ap_jv *root;
	const char *form, *chip_info;
	int64_t last_device_id;
	bool needs_ips;        /* its devices have addresses, and the network is used */
	bool job_wide_ids;     /* device_id may count over the whole job */
	enum ap_status status; /* of the first fault; reading goes on to find the others */
	AP_VEC(struct ap_card) cards;
	AP_VEC(const char *) servers; /* ids */
	struct ap_rank_tier pod, cluster;
};

/* What a table of a form is as an object, for the table of keys. */
enum ap_rank_top { AP_RANK_1_0, AP_RANK_1_2, AP_RANK_2_0, AP_RANK_LAB, AP_RANK_CLOUD };

/* A form: recognised by its version (NULL: it has none), a key that it has and one that it lacks.
 * parse NULL: known by name only, and why_not says why. */
struct ap_rank_form {
	const char *name, *version, *has, *lacks;
	enum ap_rank_top top; /* where parse is given */
	void (*parse)(struct ap_rank_table *t);
	const char *why_not;
};

void ap_rank_table_parse_lab(struct ap_rank_table *t);
void ap_rank_table_parse_cloud(struct ap_rank_table *t);
void ap_rank_table_parse_1_0(struct ap_rank_table *t);
void ap_rank_table_parse_1_2(struct ap_rank_table *t);
void ap_rank_table_parse_2_0(struct ap_rank_table *t);

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

/* The member `key` of obj as a name of 1 to 64 bytes, an integer as its digits; NULL, with a report
 * by `check`, where it is none. */
const char *ap_rank_table_name(
	struct ap_rank_table *t, const struct ap_jv *obj, const char *key, const char *check);

/* A string member that may be missing; "" then. */
const char *ap_rank_table_text(struct ap_rank_table *t, const struct ap_jv *obj, const char *key);

/* Is v an object? Reports where it is not. */
bool ap_rank_table_is_object(struct ap_rank_table *t, const struct ap_jv *v, const char *what);

/* Warns where the table is not "completed". */
void ap_rank_table_check_status(struct ap_rank_table *t);

/*
 * Goes over the whole table: warns of keys that no object of its kind has, once for each kind, and reads
 * chip_info, at the top or of a server, a group, a device or the like, into t->chip_info. Two that differ
 * are a fault.
 */
void ap_rank_table_check_keys(struct ap_rank_table *t, enum ap_rank_top top);

/* Adds a card: device_id and device_ip of device, rank_id of ranked (NULL: given later). */
struct ap_card *ap_rank_table_card(struct ap_rank_table *t, const struct ap_jv *device,
	const struct ap_jv *ranked, uint32_t server);

/*
 * Reads super_pod_list (if asked) and cluster_list, where the table has them: objects with a name and a
 * server_list of names that are in ids, where the id of a name is the number of its server. Every
 * server must be in one of them, and in one only.
 */
void ap_rank_table_tiers(struct ap_rank_table *t, const struct ap_map *ids, bool with_pods);

/* Brings the pods or clusters that were read into the order of ranks; number: the index that each
 * server of the table has in topo. */
void ap_rank_table_place_tier(struct ap_rank_table *t, const struct ap_rank_tier *tier,
	const uint32_t *number, const struct ap_topo *topo, struct ap_tier *out);

/* Checks that every form shares, then the topology. */
enum ap_status ap_rank_table_finish(
	struct ap_rank_table *t, const char *sha256, const struct ap_topo **out);

/* Reports what is merely noteworthy. */
void ap_rank_table_note(
	struct ap_rank_table *t, const struct ap_jv *v, const char *check, const char *text);

/* Checks of the device addresses: present, IP, unique, equal in number and family. */
void ap_rank_table_check_ips(struct ap_rank_table *t);

/* Links the places of each server (next), and returns the lowest rank on each. */
const uint32_t *ap_topo_link(
	struct ap_ctx *ctx, struct ap_place *place, uint32_t ndev, uint32_t nserver);

/* Makes first and next of a tier from of. */
void ap_topo_link_tier(struct ap_ctx *ctx, struct ap_tier *tier, uint32_t nserver);

#endif
