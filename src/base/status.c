/* SPDX-License-Identifier: Apache-2.0 */
#include "autopar/status.h"

#include <assert.h>

static const struct {
	unsigned char code;
	const char *name, *text;
} rows[] = {
#define ROW(name, code, word, text) {code, word, text},
	AP_STATUS_ROWS(ROW)
#undef ROW
};

int ap_status_exit(enum ap_status st)
{
	assert(st < AP_STATUS_COUNT);
	return rows[st].code;
}

const char *ap_status_text(enum ap_status st)
{
	assert(st < AP_STATUS_COUNT);
	return rows[st].text;
}

const char *ap_status_name(enum ap_status st)
{
	assert(st < AP_STATUS_COUNT);
	return rows[st].name;
}
