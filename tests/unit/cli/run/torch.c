/* SPDX-License-Identifier: MIT */
/* What PyTorch says of its tensors: read, joined with the account, and told in the verdict. */
#include "cli/run/torch.h"

#include <criterion/criterion.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "cli/run/verdict.h"
#include "report_fixture.h"

static struct cw_torch torch;
static struct cw_report_tensors *tensors;
static char *verdict_text;

static void setup(void)
{
    fixture_create();
    torch = (struct cw_torch){.is_wanted = 1};
    strcpy(torch.directory, "/tmp/cuwarden-torch-test-XXXXXX");
    cr_assert(mkdtemp(torch.directory));
    verdict_text = NULL;
}

static void teardown(void)
{
    cw_torch_free(tensors);
    tensors = NULL;
    cw_torch_end(&torch);
    fixture_destroy();
    free(verdict_text);
}

TestSuite(torch, .init = setup, .fini = teardown);

static void leave(const char *text)
{
    char path[CW_PLACE_MAX + 32];
    struct cw_view view = fixture_view();
    FILE *file;

    snprintf(path, sizeof(path), "%s/torch.%u", torch.directory,
             (unsigned)fixture.arena.header->pid);
    file = fopen(path, "w");
    cr_assert(file);
    fputs(text, file);
    fclose(file);
    tensors = cw_torch_read(&torch, &view);
}

#define HEAD "cuwarden-torch\t1\t2.9\nP\t12582912\n"
#define STACKS                                                                                     \
    "K\n"                                                                                          \
    "F\t/usr/lib/python3/dist-packages/torch/nn/linear.py\t99\t__init__\n"                         \
    "F\t/home/me/train.py\t7\tbuild\n"                                                             \
    "F\t/home/me/main.py\t1\t<module>\n"                                                           \
    "K\n"                                                                                          \
    "F\t<string>\t3\tstep\n"                                                                       \
    "K\n"
#define TWO_SEGMENTS "G\t0\t4096\t8388608\nG\t0\t4194304\t8388608\nG\t0\t0\t0\n"

static const char whole[] = HEAD "S\thalf\t1\n" TWO_SEGMENTS STACKS "B\t0\t0\t1\t1048576\n"
                                 "S\tpeak\t2\n" TWO_SEGMENTS STACKS "B\t0\t0\t2\t2097152\n"
                                 "B\t1\t0\t4\t4194304\n"
                                 "B\t1\t1\t1\t1048576\n"
                                 "B\t2\t2\t3\t3145728\n"
                                 "S\texit\t3\n" TWO_SEGMENTS STACKS "B\t1\t0\t1\t1048576\n";

Test(torch, tensors_are_summed_up_under_the_programs_own_lines)
{
    leave(whole);
    cr_assert(tensors);
    cr_assert_eq(tensors->rows, 3u);
    cr_expect_str_eq(tensors->row[0].file, "/home/me/train.py");
    cr_expect_eq(tensors->row[0].line, 7u);
    cr_expect_eq(tensors->row[0].peak_tensors, 6u);
    cr_expect_eq(tensors->row[0].peak_bytes, 6 * MIB);
    cr_expect_eq(tensors->row[0].half_bytes, MIB);
    cr_expect_eq(tensors->row[0].exit_bytes, MIB);
    cr_expect_null(tensors->row[1].file, "autograd's have no line");
    cr_expect_str_eq(tensors->row[2].file, "<string>");
    cr_expect_eq(tensors->peak_bytes, 10 * MIB);
    cr_expect(tensors->has_exit);
    cr_expect_eq(tensors->segments, 2u, "what was given back is no segment");
    cr_expect(cw_report_tensors_tell(tensors));
}

static void alloc_at(uint32_t site, uint64_t address)
{
    uint32_t block = fixture.arena.header->table[CW_TABLE_BLOCK].count;

    fixture_alloc(site, 8 * MIB, 1, FIXTURE_MS);
    ((struct cw_live_block *)cw_arena_at(&fixture.arena, CW_TABLE_BLOCK, block))->key = address;
}

Test(torch, a_line_is_joined_with_the_site_of_the_segments_that_hold_most_of_it)
{
    uint32_t stack = fixture_line(0, "/home/me/train.py", "build", 7);
    uint32_t few = fixture_site(stack, "cudaMalloc", CW_KIND_DEVICE, 0);
    uint32_t most = fixture_site(stack, "cuMemAlloc", CW_KIND_DEVICE, 0);

    alloc_at(few, 4096);
    alloc_at(most, 4194304);
    leave(whole);
    cr_assert(tensors);
    cr_expect_eq(tensors->known, 2u);
    cr_expect_eq(tensors->known_bytes, 16 * MIB);
    cr_expect_eq(tensors->row[0].site, most);
    cr_expect_eq(tensors->row[1].site, 0u, "its segment is gone");
}

Test(torch, what_is_no_snapshot_is_passed_over)
{
    static const char *const texts[] = {
        "",
        "\n\n\t\t\t\n",
        "B\t0\t0\t1\t1\n",
        HEAD "S\tpeak\t2\nB\t7\t0\t1\t1\nF\tx\t1\ty\nG\nB\nK\tB\n",
        HEAD "S\tpeak\nS\tother\t1\nG\t0\t1\t1\nK\nB\t0\t0\t1\t1\n",
        HEAD "S\tpeak\t2\nG\t0\t1\t1\nK\nF\ta\\",
        HEAD "S\tpeak\t99999999999999999999999\nG\t-1\t-1\t-1\nK\nB\t-1\t-1\t-1\t-1\n",
    };

    for (size_t i = 0; i < sizeof(texts) / sizeof(*texts); i++) {
        leave(texts[i]);
        cr_assert(tensors, "text %zu", i);
        cr_expect_eq(tensors->peak_bytes, 0u, "text %zu", i);
        cr_expect_not(cw_report_tensors_tell(tensors));
        cw_torch_free(tensors);
        tensors = NULL;
    }
}

Test(torch, a_snapshot_far_below_the_peak_does_not_tell_who_held_it)
{
    leave(HEAD "S\tpeak\t2\n" TWO_SEGMENTS STACKS "B\t0\t0\t1\t1048576\n");
    cr_assert(tensors);
    cr_expect_not(cw_report_tensors_tell(tensors));
}

static void print_verdict(void)
{
    struct cw_view view = fixture_view();
    struct cw_report_request request = {.process = CW_REPORT_PROCESS_DEAD, .tensors = tensors};
    struct cw_report_job *job = cw_report_open(&view, &request);
    struct cw_verdict_ending ending = {.peak_bytes = 16 * MIB, .prefix = "", .columns = 200};
    struct cw_run_verdict verdict = {.processes = 0};
    size_t len = 0;
    FILE *out = open_memstream(&verdict_text, &len);

    cr_assert(job && out);
    cw_report_read_listed(job, cw_verdict_want);
    cw_verdict_add(&verdict, cw_report_of(job));
    cw_verdict_print(&verdict, &ending, out);
    fclose(out);
    cw_verdict_free(&verdict);
    cw_report_close(job);
}

Test(torch, the_verdict_tells_lines_instead_of_segments)
{
    fixture_alloc(fixture_site(fixture_line(0, "/home/me/train.py", "other", 9), "cudaMalloc",
                               CW_KIND_DEVICE, 0),
                  16 * MIB, 1, FIXTURE_MS);
    leave(whole);
    print_verdict();
    cr_expect(strstr(verdict_text, "held until exit: 1.0 MiB in 1 tensor at build train.py:7\n"),
              "%s", verdict_text);
    cr_expect(strstr(verdict_text,
                     "  in PyTorch: 6.0 MiB in 6 tensors at build train.py:7, 3.0 MiB in 3 tensors "
                     "at C++ (autograd), 1.0 MiB in 1 tensor at step <string>:3\n"),
              "%s", verdict_text);
}

Test(torch, a_framework_that_cannot_tell_says_why)
{
    fixture_alloc(fixture_site(0, "cudaMalloc", CW_KIND_DEVICE, 0), MIB, 1, FIXTURE_MS);
    leave("cuwarden-torch\t1\t2.9\nE\tRuntimeError: no\\nhistory\n");
    print_verdict();
    cr_expect(strstr(verdict_text, "PyTorch cannot tell its tensors: RuntimeError: no"), "%s",
              verdict_text);
}
