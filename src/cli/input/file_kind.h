/* SPDX-License-Identifier: MIT */
/* Identifies unexpected files, and decompresses gzip files. */
#ifndef CW_CLI_FILE_KIND_H
#define CW_CLI_FILE_KIND_H

/* What the file is, by its first bytes, and what to do about it; text to follow "'FILE' is ". NULL:
 * unknown. */
const char *cw_file_kind(int fd);

int cw_file_is_gzip(int fd);
/* Decompresses the gzip file `from`, from its beginning, to `to`. 0, or -1 after a message that
 * names `path`. */
int cw_file_gunzip(int from, int to, const char *path);

#endif
