/* SPDX-License-Identifier: MIT */
/* Targets that read files of the system and requests of strangers: symbols and debug information of
 * programs, the dynamic linker's cache and scripts, files of models, HTTP. */
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include "cli/debug/debug_info.h"
#include "cli/doctor/elf_facts.h"
#include "cli/doctor/exports.h"
#include "cli/doctor/loader.h"
#include "cli/doctor/program_file.h"
#include "cli/estimate/model_files.h"
#include "cli/fleet/http_server.h"
#include "fuzz.h"
#include "live_fixture.h"
#include "report/symbols/elf.h"
#include "report/symbols/symbol.h"

#define FRAMES 64

/* ---- symbols ---- */

static void read_all_symbols(const char *path, const uint8_t *build_id, size_t build_id_len)
{
    static Elf64_Sym symbols[256];
    struct cw_elf elf;
    char name[64];
    size_t count;

    if (cw_elf_open_symbols(&elf, path, build_id, build_id_len) != 0)
        return;
    for (uint64_t first = 0; (count = cw_elf_read_symbols(&elf, first, symbols, 256)) > 0;
         first += count)
        for (size_t i = 0; i < count; i++) {
            if (cw_elf_read_name(&elf, symbols[i].st_name, name, sizeof(name)) >= sizeof(name))
                fuzz_wrong("a name is longer than its room");
            (void)cw_elf_section_end(&elf, symbols[i].st_shndx);
        }
    (void)cw_elf_has_section(&elf, ".nv_fatbin");
    cw_elf_close(&elf);
}

void fuzz_elf(const uint8_t *bytes, size_t size)
{
    const char *path = fuzz_file(bytes, size);
    struct cw_elf_facts facts;
    struct cw_exports exports;
    char why[256];

    read_all_symbols(path, NULL, 0);
    read_all_symbols(path, (const uint8_t *)"\1\2\3\4", 4);
    if (cw_elf_facts_read(&facts, path) == 0) {
        for (unsigned i = 0; i < facts.needed_count; i++)
            (void)strlen(facts.needed[i]);
        cw_elf_facts_free(&facts);
    }
    if (cw_exports_read(&exports, path, why, sizeof(why)) == 0)
        cw_exports_destroy(&exports);
}

/* ---- debug information ---- */

void fuzz_dwarf(const uint8_t *bytes, size_t size)
{
    static const struct cw_debug_options options = {.sysroot = ""};
    struct cw_debug_info *info = cw_debug_info_create(&options);
    struct cw_symbols symbols;
    struct cw_view view;
    uint32_t module, frame[FRAMES];

    fixture_create();
    module = fixture_module(fuzz_file(bytes, size), 0, CW_MODULE_PROGRAM);
    for (unsigned i = 0; i < FRAMES; i++)
        frame[i] = fixture_frame(0, module, 0x1000 + i * 4);
    view = fixture_view();
    if (info && cw_symbols_init(&symbols, &view, NULL, NULL) == 0) {
        cw_symbols_use(&symbols, cw_debug_info_ops(info), NULL);
        for (unsigned i = 0; i < FRAMES; i++)
            cw_symbols_want(&symbols, frame[i]);
        cw_symbols_resolve(&symbols);
        for (unsigned i = 0; i < FRAMES; i++)
            for (unsigned place = 0; place < cw_symbols_places(&symbols, frame[i]); place++)
                (void)cw_symbols_place(&symbols, frame[i], place);
        cw_symbols_fini(&symbols);
    }
    cw_debug_info_destroy(info);
    fixture_destroy();
}

/* ---- the linker's cache, scripts ---- */

static char script[] = "/tmp/fuzz-script.XXXXXX";

static void remove_script(void)
{
    unlink(script);
}

/* A file of its own: a script is found by its name. */
static int open_script(void)
{
    static int fd = -1;

    if (fd >= 0)
        return open(script, O_WRONLY | O_TRUNC);
    fd = mkstemp(script);
    fchmod(fd, 0700);
    atexit(remove_script);
    return dup(fd);
}

static void find_interpreter(const uint8_t *bytes, size_t size)
{
    static struct cw_program_file program;
    int fd = open_script();

    if (write(fd, bytes, size) != (ssize_t)size)
        fuzz_wrong("no script");
    close(fd);
    cw_program_file_find(&program, "", script, "/bin");
    cw_program_file_free(&program);
}

/* The cache, as it is read; or a script. */
void fuzz_config(const uint8_t *bytes, size_t size)
{
    struct cw_loader loader = {.root = "", .library_path = "/lib:$ORIGIN/${LIB}:$PLATFORM"};
    struct cw_elf_facts facts = {.is_elf = 1};
    char *text, found[PATH_MAX];

    if (size >= 2 && memcmp(bytes, "#!", 2) == 0) {
        find_interpreter(bytes, size);
        return;
    }
    loader.cache = fuzz_text(bytes, size);
    loader.cache_size = size;
    text = fuzz_text(bytes, size < 256 ? size : 256);
    facts.rpath = text;
    (void)cw_loader_find(&loader, "libdl.so.2", "/bin/program", &facts, found);
    (void)cw_loader_find(&loader, "libnone.so.2", "/bin/program", NULL, found);
    cw_loader_destroy(&loader);
    free(text);
}

/* ---- what files of models say ---- */

static struct cw_estimate_load model_load(const struct cw_facts *facts, int is_training)
{
    return (struct cw_estimate_load){.batch = 3,
                                     .context = 5000,
                                     .chunk = 2048,
                                     .devices = 2,
                                     .is_training = (uint8_t)is_training,
                                     .optimizer = CW_OPTIMIZER_ADAFACTOR,
                                     .weights = facts->weights ? facts->weights
                                                               : cw_number_format_find("bf16"),
                                     .cache = cw_number_format_find("bf16")};
}

/* What can be estimated is less than any address, the sum of its parts, and no less with more to
 * do. */
static void estimate(const struct cw_facts *facts, const struct cw_shape *shape, int is_training)
{
    struct cw_estimate_load load = model_load(facts, is_training);
    struct cw_estimate less, more;
    struct cw_refusal refusal;
    uint64_t sum = 0;

    if (cw_estimate_make(shape, &facts->stored, &load, &less, &refusal) != 0) {
        if (refusal.why[0] == '\0')
            fuzz_wrong("refused without a word");
        return;
    }
    for (unsigned i = 0; i < CW_PART_COUNT; i++)
        sum += less.part[i];
    if (sum != less.total || less.total > (uint64_t)1 << 60)
        fuzz_wrong("parts of %llu, total %llu", (unsigned long long)sum,
                   (unsigned long long)less.total);
    load.context *= 2;
    if (cw_estimate_make(shape, &facts->stored, &load, &more, &refusal) == 0 &&
        more.total < less.total)
        fuzz_wrong("less memory for more tokens");
}

void fuzz_model(const uint8_t *bytes, size_t size)
{
    static struct cw_facts facts;
    struct cw_refusal refusal;

    if (cw_model_files_read(&facts, fuzz_file(bytes, size)) != 0)
        return;
    if (facts.has_shape && cw_shape_complete(&facts.shape, &refusal) != 0) {
        if (refusal.why[0] == '\0')
            fuzz_wrong("refused without a word");
        return;
    }
    for (int is_training = 0; is_training <= 1; is_training++)
        estimate(&facts, facts.has_shape ? &facts.shape : NULL, is_training);
}

/* ---- HTTP ---- */

static char *make_word(void *arg, size_t *out_len)
{
    *out_len = strlen(arg);
    return strdup(arg);
}

static struct cw_http_server server;
static struct sockaddr_un address;
static socklen_t address_len;

static void *serve(void *arg)
{
    static const volatile sig_atomic_t never;
    sigset_t mask;

    (void)arg;
    sigfillset(&mask);
    (void)cw_http_serve(&server, &never, &mask);
    return NULL;
}

static void start_server(void)
{
    static const struct cw_http_path paths[] = {{"/word", "text/plain", make_word},
                                                {NULL, NULL, NULL}};
    static char word[] = "it is served";
    pthread_t thread;

    server =
        (struct cw_http_server){.listeners = 1, .path = paths, .arg = word, .timeout_ms = 60000};
    address.sun_family = AF_UNIX;
    server.listener[0] = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0);
    address_len = sizeof(address); /* the kernel chooses a name */
    if (bind(server.listener[0], (struct sockaddr *)&address, sizeof(address.sun_family)) != 0 ||
        listen(server.listener[0], 8) != 0 ||
        getsockname(server.listener[0], (struct sockaddr *)&address, &address_len) != 0 ||
        pthread_create(&thread, NULL, serve, NULL) != 0)
        fuzz_wrong("no server");
    pthread_detach(thread);
}

/* One answer, or none: the length that it states is what follows, nothing after a HEAD. */
static void check_answer(const char *answer, int is_head)
{
    const char *body = strstr(answer, "\r\n\r\n"), *length = strstr(answer, "Content-Length: ");
    int status = 0;

    if (answer[0] == '\0')
        return;
    if (sscanf(answer, "HTTP/1.1 %3d ", &status) != 1 || status < 200 || status > 505 || !body ||
        !length || length > body)
        fuzz_wrong("no answer: %s", answer);
    if (strlen(body + 4) != strtoul(length + 16, NULL, 10) && !(is_head && body[4] == '\0'))
        fuzz_wrong("another length: %s", answer);
}

/* The request in two parts. */
void fuzz_http(const uint8_t *bytes, size_t size)
{
    static char answer[4096];
    const struct timeval limit = {.tv_sec = 10};
    int fd = socket(AF_UNIX, SOCK_STREAM, 0);
    size_t half = size / 2, got = 0;
    ssize_t n;

    if (server.listeners == 0)
        start_server();
    if (connect(fd, (struct sockaddr *)&address, address_len) != 0)
        fuzz_wrong("nobody listens");
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
    (void)send(fd, bytes, half, MSG_NOSIGNAL);
    (void)send(fd, bytes + half, size - half, MSG_NOSIGNAL);
    shutdown(fd, SHUT_WR);
    while (got < sizeof(answer) - 1 && (n = read(fd, answer + got, sizeof(answer) - 1 - got)) > 0)
        got += (size_t)n;
    answer[got] = '\0';
    close(fd);
    check_answer(answer, size > 4 && memcmp(bytes, "HEAD", 4) == 0);
}
