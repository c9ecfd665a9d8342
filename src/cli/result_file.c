/* SPDX-License-Identifier: MIT */
/* Results of commands. See result_file.h. */
#include "cli/result_file.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/cli.h"
#include "report/dump_name.h"

static int fail(const struct cw_result_file *result, int error)
{
    cw_cli_error("cannot write '%s': %s", result->path, strerror(error));
    return -1;
}

int cw_result_open(struct cw_result_file *result, const char *path)
{
    char pattern[2 * CW_PATH_MAX];
    struct cw_path_values values = {.pid = 0};
    int error, fd;

    *result = (struct cw_result_file){.out = stdout, .file = {.fd = -1}};
    if (!path || strcmp(path, "-") == 0)
        return 0;
    result->path = path;
    if (strlen(path) >= CW_PATH_MAX)
        return fail(result, ENAMETOOLONG);
    cw_dump_name_escape(pattern, sizeof(pattern), path);
    error = cw_report_file_open(&result->file, pattern, "", &values);
    if (error != 0)
        return fail(result, error);
    fd = dup(result->file.fd); /* the file itself is closed by the one who opened it */
    result->out = fd >= 0 ? fdopen(fd, "w") : NULL;
    if (result->out)
        return 0;
    error = errno;
    if (fd >= 0)
        close(fd);
    return fail(result, cw_report_file_close(&result->file, error));
}

int cw_result_close(struct cw_result_file *result, int failed)
{
    int error = 0;

    if (!result->path)
        return failed ? -1 : 0; /* main.c closes standard output, and says if that fails */
    if (ferror(result->out))
        error = EIO;
    errno = 0;
    if (fclose(result->out) != 0 && error == 0)
        error = errno ? errno : EIO;
    if (failed) {
        cw_report_file_close(&result->file, ECANCELED);
        return -1;
    }
    error = cw_report_file_close(&result->file, error);
    return error == 0 ? 0 : fail(result, error);
}

int cw_result_has_color(const struct cw_result_file *result)
{
    const char *term = getenv("TERM");
    const char *no = getenv("NO_COLOR");

    return isatty(fileno(result->out)) && term && strcmp(term, "dumb") != 0 && !(no && *no);
}
