/* SPDX-License-Identifier: MIT */
/* Options, launcher, environment. See settings.h. */
#include "hook/settings.h"

#include <stdatomic.h>
#include <string.h>
#include <sys/auxv.h>
#include <unistd.h>

#include "base/compiler.h"
#include "base/log.h"
#include "base/out.h"
#include "report/path/path.h"

extern char **environ;

enum { READ_NOT_YET, READ_DONE };

static struct {
    struct cw_options options;
    struct cw_option_complaints complaints;
    struct cw_launcher launcher; /* read at the first call: a parent may set it in its child */
    _Atomic int is_read;
} self;

char *const *cw_settings_environment(void)
{
    return environ;
}

const struct cw_options *cw_settings_options(void)
{
    return &self.options;
}

const struct cw_launcher *cw_settings_launcher(void)
{
    return &self.launcher;
}

void cw_settings_read(void)
{
    int before = READ_NOT_YET;

    /* A constructor of another library may call CUDA before ours has run. */
    if (!atomic_compare_exchange_strong(&self.is_read, &before, READ_DONE))
        return;
    cw_options_parse(environ, !getauxval(AT_SECURE), &self.options, &self.complaints);
    /* A setuid program: the preload is meant for all programs; we stay out of privileged ones. */
    if (getauxval(AT_SECURE))
        self.options.mode = CW_MODE_OFF;
    cw_log_set_level(self.options.log);
}

int cw_settings_want_tags(void)
{
    cw_settings_read(); /* a constructor of the program may use NVTX before ours has run */
    return self.options.mode != CW_MODE_OFF && self.options.growth == CW_GROWTH_ON;
}

/* A relative name starts at the working directory of the first call of CUDA, not of the end: a
 * server may have moved to / by then. Nor of the start, so that a process without CUDA makes no
 * system calls. is_template: a % in the directory's name is not an escape. */
static void pin(cw_option_path path, int is_template)
{
    char start[CW_OPTION_VALUE_MAX], pinned[CW_OPTION_VALUE_MAX];
    size_t len = 0;

    if (path[0] == '\0' || path[0] == '/' || getcwd(start, sizeof(start)) == NULL)
        return;
    for (const char *from = start; *from != '\0' && len + 2 < sizeof(pinned); from++) {
        if (*from == '%' && is_template)
            pinned[len++] = '%';
        pinned[len++] = *from;
    }
    pinned[len] = '\0';
    if (len + 1 + strlen(path) >= CW_OPTION_VALUE_MAX)
        return;
    memcpy(start, path, sizeof(start));
    cw_format(path, CW_OPTION_VALUE_MAX, "%s/%s", pinned, start);
}

static void pin_files(void)
{
    if (cw_path_names_file(self.options.report))
        pin(self.options.report, 1);
    pin(self.options.suppressions, 0);
    if (cw_path_names_file(self.options.trace))
        pin(self.options.trace, 1);
}

/* What only the command writes becomes JSON here, of which the command makes it. */
static void name_form(void)
{
    static const char *const forms[] = {".html", ".pb.gz", ".folded"};
    char *report = self.options.report;

    for (size_t i = 0; i < CW_ARRAY_LEN(forms) && self.options.format == CW_FORMAT_AUTO; i++) {
        if (!cw_path_ends_in(report, forms[i]) ||
            strlen(report) + sizeof(".json") > sizeof(self.options.report))
            continue;
        cw_log(CW_LOG_WARN,
               "CUWARDEN_REPORT=%s: the library writes text and JSON, so the report goes to "
               "%s.json; 'cuwarden report -o FILE%s' makes the other form of it",
               report, report, forms[i]);
        memcpy(report + strlen(report), ".json", sizeof(".json"));
        return;
    }
}

/* The ranks of a job differ only in their number. Names of dumps follow from this one; a forked
 * child finds a name that is distinct already. */
static void name_rank(void)
{
    char named[CW_OPTION_VALUE_MAX];

    if (!cw_path_names_file(self.options.report) || self.launcher.rank[0] == '\0' ||
        self.launcher.size < 2 || !cw_path_is_shared(self.options.report) ||
        cw_path_insert(named, sizeof(named), self.options.report, ".rank-%r") != 0)
        return;
    memcpy(self.options.report, named, strlen(named) + 1);
    cw_log(CW_LOG_INFO,
           "rank %s of a job of %ju: the report's name gets \".rank-%s\", because CUWARDEN_REPORT "
           "is the same for all ranks",
           self.launcher.rank, (uintmax_t)self.launcher.size, self.launcher.rank);
}

void cw_settings_announce(void)
{
    const struct cw_option_complaints *complaints = &self.complaints;

    for (unsigned i = 0; i < complaints->count && i < CW_OPTION_COMPLAINTS; i++)
        cw_log(CW_LOG_WARN, "%s", complaints->line[i]);
    if (complaints->count > CW_OPTION_COMPLAINTS)
        cw_log(CW_LOG_WARN, "%u more complaints about CUWARDEN_ variables; see 'cuwarden options'",
               complaints->count - CW_OPTION_COMPLAINTS);
    if (self.options.mode == CW_MODE_OFF)
        return;
    cw_launcher_read(&self.launcher, environ);
    name_form();
    pin_files();
    name_rank();
}
