/* SPDX-License-Identifier: MIT */
/* Files that are not what a reader expects: what they are instead, and those compressed by gzip. */
#ifndef CW_CLI_FILE_KIND_H
#define CW_CLI_FILE_KIND_H

/* What the file is, by how it begins, and the way out, to stand behind "'FILE' is "; NULL: nothing
 * that is known here. */
const char *cw_file_kind(int fd);

int cw_file_is_gzip(int fd);
/* Writes to `to` what `from`, read from its beginning, has in gzip. 0, or -1 after a message that
 * names `path`. */
int cw_file_gunzip(int from, int to, const char *path);

#endif
