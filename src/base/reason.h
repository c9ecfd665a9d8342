/* SPDX-License-Identifier: MIT */
/* An errno in words, for messages. strerror depends on the locale and may allocate. */
#ifndef CW_BASE_REASON_H
#define CW_BASE_REASON_H

/* "no space left on the device"; "the system refused" for what has no wording of its own. */
const char *cw_reason(int error);

#endif
