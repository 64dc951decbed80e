/* SPDX-License-Identifier: Apache-2.0 */
#include "autopar/status.h"

#include <assert.h>

int ap_status_exit(enum ap_status st)
{
	static const unsigned char codes[] = {
#define ROW(name, code, word, text) code,
		AP_STATUS_ROWS(ROW)
#undef ROW
	};

	assert(st < AP_STATUS_COUNT);
	return codes[st];
}

const char *ap_status_text(enum ap_status st)
{
	static const char *const texts[] = {
#define ROW(name, code, word, text) text,
		AP_STATUS_ROWS(ROW)
#undef ROW
	};

	assert(st < AP_STATUS_COUNT);
	return texts[st];
}

const char *ap_status_name(enum ap_status st)
{
	static const char *const names[] = {
#define ROW(name, code, word, text) word,
		AP_STATUS_ROWS(ROW)
#undef ROW
	};

	assert(st < AP_STATUS_COUNT);
	return names[st];
}
