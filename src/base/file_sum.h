/* SPDX-License-Identifier: Apache-2.0 */
/* Private to base: what an open file holds. */
#ifndef AP_BASE_FILE_SUM_H
#define AP_BASE_FILE_SUM_H

#include "base/file.h"

/* 0 or an errno; reads from its beginning, wherever it stands. */
int ap_file_sum_fd(int fd, struct ap_file_sum *out);

#endif
