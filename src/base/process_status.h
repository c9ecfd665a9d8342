/* SPDX-License-Identifier: MIT */
/* Numbers that the kernel tells of this process in /proc/self/status. */
#ifndef CW_BASE_PROCESS_STATUS_H
#define CW_BASE_PROCESS_STATUS_H

/* That of the line "KEY:\tNUMBER"; -1 if the file or the line is not there. No cancellation point.
 */
long cw_process_status(const char *key);

#endif
