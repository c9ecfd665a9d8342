/* SPDX-License-Identifier: MIT */
/*
 * `cuwarden metrics`: exports what `cuwarden top` shows to Prometheus: on standard output, in a
 * file for node_exporter, or over HTTP.
 */
#include "cli/ui/destination.h"
#include "cli/ui/flags.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>
#include <stdint.h>
#include <stdio.h>

#include "base/options/option_values.h"
#include "base/out.h"
#include "cli/fleet/fleet.h"
#include "cli/fleet/http_server.h"
#include "cli/fleet/metrics_text.h"
#include "base/compiler.h"
#include "cli/cli.h"
#include "cli/ui/exit_status.h"
#include "cli/ui/message.h"

#define SECOND_NS      UINT64_C(1000000000)
#define INTERVAL_LEAST UINT64_C(100000000)
#define INTERVAL_MOST  UINT64_C(86400000000000)
#define TIMEOUT_MS     10000

struct request {
    struct cw_fleet_choice whom;
    const char *textfile;
    uint64_t interval_ns; /* of the file; 0: once */
    const char *address[CW_HTTP_LISTENERS + 1];
    unsigned addresses;
    int may_listen_anywhere;
    const char *host[CW_HTTP_HOSTS + 1];
    unsigned hosts;
};

static volatile sig_atomic_t ended_by;

enum {
    FLAG_TEXTFILE = 0x100,
    FLAG_INTERVAL,
    FLAG_LISTEN,
    FLAG_LISTEN_ANY,
    FLAG_HOST,
    FLAG_DIRECTORY
};

const struct cw_command_line *cw_line_metrics(void)
{
    static const struct cw_flag flags[] = {
        {.id = FLAG_TEXTFILE,
         .name = "textfile",
         .value = "FILE",
         .help = "write FILE for node_exporter's textfile collector"},
        {.id = FLAG_INTERVAL,
         .name = "interval",
         .value = "TIME",
         .help = "with --textfile: rewrite it at this interval, as in 15s"},
        {.id = FLAG_LISTEN,
         .name = "listen",
         .value = "ADDRESS",
         .help = "serve GET /metrics at ADDRESS, as in 127.0.0.1:9835 or [::1]:9835; port 0 picks "
                 "a free port; may be repeated"},
        {.id = FLAG_LISTEN_ANY,
         .name = "listen-any",
         .help = "allow --listen on addresses that other machines can reach"},
        {.id = FLAG_HOST,
         .name = "host",
         .value = "NAME",
         .help = "with --listen: answer requests to this host name, too, besides addresses and "
                 "localhost; may be repeated"},
        {.id = FLAG_DIRECTORY,
         .name = "directory",
         .value = "DIR",
         .help = "look for live files in DIR instead; may be repeated"},
    };
    static const struct cw_command_line line = {
        .usage = "[OPTION]...",
        .about = "Print the memory use of processes under libcuwarden.so in Prometheus format.",
        .group = {{flags, CW_ARRAY_LEN(flags), NULL}},
        .notes = "The metrics cover the processes of the user who runs the command; root can name "
                 "other users' directories with --directory. Without --textfile or --listen, the "
                 "metrics are printed once.\n\n"
                 "The exit status is 0, also after SIGTERM or SIGINT, 1 if something failed, and 2 "
                 "for a usage error.",
    };

    return &line;
}

/* ---- the text ---- */

struct source {
    struct cw_fleet fleet;
    const struct cw_fleet_choice *whom;
    int goes_on; /* a directory that cannot be read may be readable next time */
    int is_told; /* of such a directory */
};

/* 0, or -1 after a message: of processes that may be there the metrics would say nothing. */
static int check_directories(struct source *source)
{
    if (!source->fleet.has_lost)
        return 0;
    if (!source->is_told)
        cw_cli_error("%s", source->fleet.why);
    source->is_told = 1;
    return source->goes_on ? 0 : -1;
}

/* To be freed; NULL after a message. */
static char *make_metrics(void *arg, size_t *out_len)
{
    struct source *source = arg;
    char *text = NULL;
    FILE *to;

    if (cw_fleet_look(&source->fleet, source->whom) != 0 || check_directories(source) != 0)
        return NULL;
    to = open_memstream(&text, out_len);
    if (to)
        cw_metrics_print(to, &source->fleet);
    if (!to || fclose(to) != 0) {
        cw_cli_error("out of memory");
        free(text);
        return NULL;
    }
    return text;
}

static char *make_healthy(void *arg, size_t *out_len)
{
    char *text = strdup("ok\n");

    (void)arg;
    *out_len = text ? strlen(text) : 0;
    return text;
}

static int print_once(struct source *source)
{
    struct cw_out out;
    char buffer[BUFSIZ];
    size_t len;
    char *text = make_metrics(source, &len);

    if (!text)
        return -1;
    cw_out_init(&out, STDOUT_FILENO, buffer, sizeof(buffer)); /* it keeps the reason */
    cw_out_write(&out, text, len);
    free(text);
    if (cw_out_flush(&out) == 0)
        return 0;
    cw_cli_error("write error: %s", strerror(out.error));
    return -1;
}

/* ---- the file ---- */

static int write_file(struct source *source, const char *path)
{
    struct cw_destination to = {.noun = "metrics", .path = path};
    size_t len;
    char *text = make_metrics(source, &len);
    int rc = text ? cw_destination_open(&to) : -1;

    if (rc == 0) {
        fwrite(text, 1, len, to.out);
        rc = cw_destination_close(&to);
    }
    free(text);
    return rc;
}

static void on_end(int number)
{
    ended_by = number;
}

/* Signals are unblocked only while the command waits. */
static void take_signals(sigset_t *old)
{
    struct sigaction end = {.sa_handler = on_end};
    sigset_t ends;

    sigemptyset(&ends);
    sigaddset(&ends, SIGTERM);
    sigaddset(&ends, SIGINT);
    sigaction(SIGTERM, &end, NULL);
    sigaction(SIGINT, &end, NULL);
    sigprocmask(SIG_BLOCK, &ends, old);
}

static int write_files(struct source *source, const struct request *request)
{
    struct timespec pause = {.tv_sec = (time_t)(request->interval_ns / SECOND_NS),
                             .tv_nsec = (long)(request->interval_ns % SECOND_NS)};
    sigset_t old;
    int rc;

    if (request->interval_ns == 0)
        return write_file(source, request->textfile);
    take_signals(&old);
    do {
        rc = write_file(source, request->textfile);
        if (rc == 0)
            (void)ppoll(NULL, 0, &pause, &old);
    } while (rc == 0 && !ended_by);
    return rc;
}

/* ---- the server ---- */

static int serve(struct source *source, const struct request *request)
{
    static const struct cw_http_path paths[] = {
        {"/metrics", CW_METRICS_TYPE, make_metrics},
        {"/-/healthy", "text/plain; charset=utf-8", make_healthy},
        {NULL, NULL, NULL},
    };
    struct cw_http_server server = {
        .path = paths, .arg = source, .timeout_ms = TIMEOUT_MS, .host = request->host};
    char bound[64];
    sigset_t old;
    int rc = 0;

    take_signals(&old);
    for (unsigned i = 0; rc == 0 && i < request->addresses; i++) {
        rc = cw_http_listen(&server, request->address[i], request->may_listen_anywhere, bound,
                            sizeof(bound));
        if (rc == 0)
            fprintf(stderr, "cuwarden metrics: listening on http://%s/metrics\n", bound);
    }
    if (rc == 0)
        rc = cw_http_serve(&server, &ended_by, &old);
    cw_http_close(&server);
    return rc;
}

/* ---- the command line ---- */

static int set_interval(struct request *request, const char *value)
{
    if (cw_time_parse(value, &request->interval_ns) == 0 &&
        request->interval_ns >= INTERVAL_LEAST && request->interval_ns <= INTERVAL_MOST)
        return 0;
    cw_cli_error("--interval: '%s' is not a time from 100ms to 24h, as in 15s or 1m", value);
    return -1;
}

static int add_address(struct request *request, const char *value)
{
    /* One more than allowed: the listener reports that. */
    if (request->addresses < CW_ARRAY_LEN(request->address))
        request->address[request->addresses++] = value;
    return 0;
}

static int add_host(struct request *request, const char *value)
{
    if (request->hosts == CW_HTTP_HOSTS || value[0] == '\0' || strpbrk(value, ":/ ")) {
        cw_cli_error("--host: '%s' is not one of at most %d host names, without a port", value,
                     CW_HTTP_HOSTS);
        return -1;
    }
    request->host[request->hosts++] = value;
    return 0;
}

static int set_flag(void *to, int flag, char *value)
{
    struct request *request = to;

    switch (flag) {
    case FLAG_TEXTFILE:
        request->textfile = value;
        return 0;
    case FLAG_INTERVAL:
        return set_interval(request, value);
    case FLAG_LISTEN:
        return add_address(request, value);
    case FLAG_LISTEN_ANY:
        request->may_listen_anywhere = 1;
        return 0;
    case FLAG_HOST:
        return add_host(request, value);
    default:
        return cw_fleet_add_directory(&request->whom, value);
    }
}

static int check(const struct request *request)
{
    if (request->textfile && request->addresses)
        cw_cli_error("--textfile cannot be combined with --listen");
    else if (request->interval_ns && !request->textfile)
        cw_cli_error("--interval can only be used with --textfile");
    else if (request->may_listen_anywhere && !request->addresses)
        cw_cli_error("--listen-any can only be used with --listen");
    else if (request->hosts && !request->addresses)
        cw_cli_error("--host can only be used with --listen");
    else
        return 0;
    return -1;
}

static int run(const struct request *request)
{
    struct source source = {.whom = &request->whom,
                            .goes_on = request->addresses != 0 || request->interval_ns != 0};
    int rc;

    if (request->addresses)
        rc = serve(&source, request);
    else if (request->textfile)
        rc = write_files(&source, request);
    else
        rc = print_once(&source);
    cw_fleet_free(&source.fleet);
    if (rc == -2)
        return cw_cli_usage_error();
    return rc == 0 ? CW_EXIT_OK : CW_EXIT_FAILURE;
}

int cw_cmd_metrics(int argc, char **argv)
{
    struct request request = {.textfile = NULL};
    int status = cw_flags_parse(cw_line_metrics(), argc, argv, set_flag, &request);

    if (status < 0)
        status = check(&request) == 0 ? run(&request) : cw_cli_usage_error();
    cw_fleet_choice_free(&request.whom);
    return status;
}
