/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The plain cost table that all search engines work on: choose one candidate per node; minimise the
 * sum of node and edge costs; the sum of node and edge memory must not exceed the limit. It knows
 * neither operators nor machines.
 *
 * Costs from cost/ are multiples of AP_QUANTUM_S, so sums are exact in any order. A foreign problem
 * (ap_problem_load) is rounded to multiples of `quantum`, a power of two chosen so that no total
 * exceeds 2^53 quanta; the given numbers are kept for the reported objective.
 */
#ifndef AP_PROBLEM_PROBLEM_H
#define AP_PROBLEM_PROBLEM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/ctx.h"
#include "base/json.h"
#include "base/json_write.h"
#include "base/sha256.h"

struct ap_pnode {
	const char *name;
	uint32_t k; /* number of candidates, >= 1 */
	const double *cost; /* [k], INFINITY: forbidden; may be negative in foreign problems */
	const int64_t *memory; /* [k] bytes, NULL: all 0; may be negative in foreign problems */
	bool fixed; /* given by the user: sharding_propagation starts there */
	uint32_t nway; /* ways to cut a candidate one prime further */
	const int32_t *next; /* [k * nway] the candidate that results, or -1; NULL if not given */
};

struct ap_pmatrix { /* row-major, rows: candidates of u, cols: candidates of v */
	uint32_t rows, cols;
	const double *cost; /* [rows*cols], INFINITY: forbidden */
	const int64_t *memory; /* [rows*cols] or NULL */
};

struct ap_pedge {
	ap_id u, v; /* nodes, u != v; two nodes may have several edges */
	ap_id matrix; /* edges with equal content share one */
};

struct ap_problem {
	uint32_t n;
	const struct ap_pnode *node;
	uint32_t nedge;
	const struct ap_pedge *edge;
	uint32_t nmatrix;
	const struct ap_pmatrix *matrix;
	int64_t memory_limit; /* bytes; AP_NO_LIMIT if there is none */
	double quantum; /* divides every finite cost */
	const struct ap_problem *given; /* the numbers as read, same shape; NULL if equal */
};

#define AP_NO_LIMIT INT64_MAX

enum ap_outcome { /* what an engine found; not an error */
	AP_OUT_OPTIMAL, /* pick is an optimum, lower_bound == cost */
	AP_OUT_FEASIBLE, /* pick is valid, lower_bound <= optimum <= cost */
	AP_OUT_INFEASIBLE, /* proven: no pick exists */
	AP_OUT_LIMIT /* a limit was hit before any pick was found; lower_bound is valid */
};

enum ap_ended { /* why an engine went no further */
	AP_ENDED_ENGINE, /* it has no more to do, and proves nothing more */
	AP_ENDED_PROVEN, /* an optimum, or that no pick exists */
	AP_ENDED_GAP, /* proven to be near enough */
	AP_ENDED_WORK, /* the limit of work */
	AP_ENDED_MEMORY, /* the limit of what its tables may hold */
	AP_ENDED_STOPPED /* told to stop: by time or a signal */
};

struct ap_certificate { /* result of a second engine that does not contradict the choice */
	const char *engine;
	bool proven; /* found the same optimum, or proved that there is no pick */
	double lower_bound; /* as far as the engine got */
	uint64_t work;
};

struct ap_choice {
	enum ap_outcome outcome;
	const char *engine;
	uint32_t *pick; /* [n], NULL unless OPTIMAL or FEASIBLE */
	double cost; /* of pick */
	double lower_bound;
	int64_t memory; /* of pick */
	int64_t least_memory; /* if INFEASIBLE by memory: the least that any pick needs, or a lower
	                         bound of it above the limit; else -1 */
	uint64_t work; /* deterministic count of inner steps */
	enum ap_ended ended;
	uint64_t ahead; /* work of a whole elimination that was not begun; 0: none was to be */
	const struct ap_certificate *certificate; /* NULL if not asked for */
};

/* The word for it: proven, gap, work-limit, planner-memory, stopped, engine. */
const char *ap_ended_name(enum ap_ended ended);

/* Was any choice found? */
bool ap_choice_any(const struct ap_choice *c);

/* Cost and memory of a pick, computed from the table. O(n + edges). INFINITY if forbidden. */
double ap_problem_cost(const struct ap_problem *p, const uint32_t *pick);
int64_t ap_problem_memory(const struct ap_problem *p, const uint32_t *pick);

/* Reads or writes autopar-problem/1 (contract section 6). */
enum ap_status ap_problem_load(struct ap_ctx *ctx, const struct ap_json *doc,
	const struct ap_problem **out);
void ap_problem_write_json(const struct ap_problem *p, ap_write_fn *write, void *user);

/* Writes the problem as an integer program (CPLEX LP: binaries x_<node>_<cand>, continuous edge
 * variables y_<edge>_<row>_<col>; if all costs are below 1, scaled by a power of two, which the first
 * line and the objective's name state) or for toulbar2 (.wcsp: cost = (optimum + offset) * quantum,
 * both in the header's name; it cannot express a memory limit, so callers refuse one). */
void ap_problem_write_lp(const struct ap_problem *p, ap_write_fn *write, void *user);
void ap_problem_write_wcsp(const struct ap_problem *p, ap_write_fn *write, void *user);

/* Writes autopar-solution/1 for a choice; the objective uses the given numbers. */
void ap_choice_write_json(const struct ap_problem *p, const struct ap_choice *c,
	ap_write_fn *write, void *user);

/* Is a lexicographically smaller than b? Breaks ties between equal costs. */
bool ap_pick_less(const uint32_t *a, const uint32_t *b, uint32_t n);

/* SHA-256 in hex of the table's content (shape, costs, memory, limit), without names. */
void ap_problem_hash(struct ap_ctx *ctx, const struct ap_problem *p, char hex[AP_SHA256_HEX + 1]);

struct ap_incident { /* edges by node */
	const ap_id *first; /* [n + 1] */
	const ap_id *edge; /* of node v: edge[first[v]] .. edge[first[v + 1] - 1], ascending */
};

/* Allocated in scratch. O(n + edges). */
struct ap_incident ap_incident_make(struct ap_ctx *ctx, const struct ap_problem *p);

/* The sum of the least costs of every node and edge, a lower bound. O(size of the table). */
double ap_bound_plain(struct ap_ctx *ctx, const struct ap_problem *p);

/* The choice of a run that found nothing: LIMIT, with the plain bound. */
void ap_choice_none(struct ap_ctx *ctx, const struct ap_problem *p, const char *engine,
	struct ap_choice *out);

/* Fills *out for pick (kept, not copied), with cost and memory; OPTIMAL if bound reaches cost. */
void ap_choice_found(const struct ap_problem *p, uint32_t *pick, double bound,
	struct ap_choice *out);

#endif
