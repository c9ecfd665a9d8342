/* SPDX-License-Identifier: MIT */
/*
 * The text form, version 3, that heaptrack's own interpreter writes for heaptrack_gui and
 * heaptrack_print; all numbers are hexadecimal. (heaptrack_interpret.cpp and
 * accumulatedtracedata.cpp of https://invent.kde.org/sdk/heaptrack define it.)
 *
 * The form is a stream of single allocations and frees. The model has only sums, so the writer
 * makes up a stream with the same sums: per call site the bytes held at the peak of its device, the
 * bytes left at the end, and the number of calls. A site's blocks have its mean size. Calls beyond
 * CALLS_MAX are thinned out.
 */
#include "cli/export/form.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <stdint.h>
#include <stdio.h>

#include "base/compiler.h"
#include "cli/model/calls.h"
#include "cli/ui/strings.h"
#include "cli/ui/message.h"

#define HEAPTRACK_VERSION 0x010400
#define FORM_VERSION      3
#define PAGE_SIZE         4096
#define FRAME_NAME_MAX    512
#define CALLS_MAX         2000000  /* whose blocks were freed; each takes two lines */
#define BLOCKS_MAX        10000000 /* at the peaks and the end; each takes a line or two */
#define NODES_MIN         4096

struct amount {
    uint64_t count, bytes;
};

/* Blocks of one size, or of two sizes that differ by a byte, and the numbers of these sizes. */
struct part {
    struct amount amount;
    uint64_t info; /* of the smaller size; the larger one has the next number */
};

/* The blocks of a site, by lifetime. */
struct plan {
    struct part lasting;   /* at the peak, and at the end */
    struct part peak;      /* at the peak */
    struct part late;      /* at the end */
    struct part transient; /* neither */
};

struct node {
    uint32_t parent, ip, number; /* number 0: free */
};

struct heaptrack {
    const struct cw_form_request *request;
    const struct cw_report_model *model;
    struct cw_calls calls;
    FILE *out;
    struct cw_strings strings; /* numbers there count from 1 */
    struct cw_strings apis;    /* their instruction pointers come first */
    uint32_t *ip;              /* by call; 0: none yet */
    uint32_t ips;
    struct node *node; /* open addressing: the tree of stacks */
    uint32_t nodes, node_cap;
    struct plan *plan; /* by place in request->site */
    uint64_t infos;
    uint64_t peak_bytes; /* of all */
    uint64_t passing;    /* to free after the next call; 0: none */
    uint64_t passing_size;
    int failed;
};

/* ---- names ---- */

/* A string follows its length, and takes one line. */
static uint32_t text(struct heaptrack *self, const char *string)
{
    uint32_t before = self->strings.count;
    uint32_t number;

    if (!string[0])
        return 0;
    number = cw_strings_add(&self->strings, string) + 1;
    if (self->strings.count == before)
        return number;
    fprintf(self->out, "s %zx ", strlen(string));
    for (; *string; string++)
        fputc((unsigned char)*string < ' ' ? ' ' : *string, self->out);
    fputc('\n', self->out);
    return number;
}

/* The CUDA functions are the leaves. */
static void put_apis(struct heaptrack *self)
{
    for (uint32_t i = 0; i < self->request->sites; i++) {
        const char *api = self->model->snapshot.site[self->request->site[i]].api;
        uint32_t before = self->apis.count;

        cw_strings_add(&self->apis, api);
        if (self->apis.count == before)
            continue;
        before = text(self, api);
        self->ips++;
        fprintf(self->out, "i %" PRIx32 " 0 %" PRIx32 " 0 0\n", self->ips, before);
    }
}

static uint32_t put_ip(struct heaptrack *self, uint32_t at)
{
    const struct cw_call *call = self->calls.call;
    uint32_t first = cw_calls_first_inlined(&self->calls, at);
    uint32_t module = text(self, cw_report_module_path(self->model, call[at].module + 1));
    char buf[FRAME_NAME_MAX];

    for (uint32_t i = first; i <= at; i++) { /* before the line that refers to them */
        text(self, cw_call_name(&self->calls, i, buf, sizeof(buf)));
        text(self, call[i].file);
    }
    fprintf(self->out, "i %" PRIx64 " %" PRIx32, call[at].offset, module);
    for (uint32_t i = first; i <= at; i++)
        fprintf(self->out, " %" PRIx32 " %" PRIx32 " %" PRIx32,
                text(self, cw_call_name(&self->calls, i, buf, sizeof(buf))),
                text(self, call[i].file), call[i].line);
    fputc('\n', self->out);
    return ++self->ips;
}

/* ---- the tree of stacks ---- */

static struct node *find_node(const struct heaptrack *self, uint32_t parent, uint32_t ip)
{
    uint64_t hash = ((uint64_t)parent << 32 | ip) * UINT64_C(0x9e3779b97f4a7c15);
    uint32_t at = (uint32_t)(hash >> 32) & (self->node_cap - 1);

    while (self->node[at].number != 0 &&
           (self->node[at].parent != parent || self->node[at].ip != ip))
        at = (at + 1) & (self->node_cap - 1);
    return &self->node[at];
}

static int grow_nodes(struct heaptrack *self)
{
    struct node *old = self->node;
    uint32_t old_cap = self->node_cap;
    uint32_t cap = old_cap ? old_cap * 2 : NODES_MIN;
    struct node *grown = calloc(cap, sizeof(*grown));

    if (!grown)
        return -1;
    self->node = grown;
    self->node_cap = cap;
    for (uint32_t i = 0; i < old_cap; i++)
        if (old[i].number != 0)
            *find_node(self, old[i].parent, old[i].ip) = old[i];
    free(old);
    return 0;
}

static uint32_t put_node(struct heaptrack *self, uint32_t parent, uint32_t ip)
{
    struct node *node;

    if (self->nodes >= self->node_cap / 2 && grow_nodes(self) != 0) {
        self->failed = 1;
        return 0;
    }
    node = find_node(self, parent, ip);
    if (node->number == 0) {
        *node = (struct node){parent, ip, ++self->nodes};
        fprintf(self->out, "t %" PRIx32 " %" PRIx32 "\n", ip, parent);
    }
    return node->number;
}

static uint32_t put_trace(struct heaptrack *self, const struct cw_snapshot_site *site)
{
    const struct cw_call_stack *stack = cw_calls_stack(&self->calls, site->stack);
    uint32_t node = 0;

    for (uint32_t i = stack->count; i-- > 0 && !self->failed;) {
        uint32_t at = self->calls.stack_call[stack->first + i];

        if (self->calls.call[at].is_inlined)
            continue;
        if (self->ip[at] == 0)
            self->ip[at] = put_ip(self, at);
        node = put_node(self, node, self->ip[at]);
    }
    return put_node(self, node, cw_strings_add(&self->apis, site->api) + 1);
}

/* ---- events ---- */

static struct amount minus(struct amount a, struct amount b)
{
    return (struct amount){a.count - b.count, a.bytes - b.bytes};
}

/* Both the part and the remainder must be possible as sums of blocks. */
static int is_part(struct amount part, struct amount whole)
{
    return part.count < whole.count ? part.bytes <= whole.bytes
                                    : part.count == whole.count && part.bytes == whole.bytes;
}

static void make_plan(const struct cw_snapshot_site *site, struct plan *plan)
{
    struct amount left = {cw_leaked_blocks(site), cw_leaked_bytes(site)};
    struct amount at_peak = {site->at_peak_blocks, site->at_peak_bytes};
    struct amount total = {site->allocs, site->total_bytes};
    struct amount seen;

    if (is_part(left, at_peak)) {
        plan->lasting.amount = left;
        plan->peak.amount = minus(at_peak, left);
    } else if (is_part(at_peak, left)) {
        plan->lasting.amount = at_peak;
        plan->late.amount = minus(left, at_peak);
    } else {
        plan->peak.amount = at_peak;
        plan->late.amount = left;
    }
    seen.count = plan->lasting.amount.count + plan->peak.amount.count + plan->late.amount.count;
    seen.bytes = plan->lasting.amount.bytes + plan->peak.amount.bytes + plan->late.amount.bytes;
    if (is_part(seen, total))
        plan->transient.amount = minus(total, seen);
}

/* `copies` of each of the two sizes: alternating takes two. */
static void put_sizes(struct heaptrack *self, struct part *part, uint32_t trace, unsigned copies)
{
    uint64_t size;

    if (part->amount.count == 0)
        return;
    size = part->amount.bytes / part->amount.count;
    part->info = self->infos;
    for (unsigned i = 0; i < 2 * copies; i++)
        fprintf(self->out, "a %" PRIx64 " %" PRIx32 "\n", size + (i >= copies), trace);
    self->infos += 2 * (uint64_t)copies;
}

static void put_plans(struct heaptrack *self)
{
    for (uint32_t i = 0; i < self->request->sites; i++) {
        const struct cw_snapshot_site *site = &self->model->snapshot.site[self->request->site[i]];
        struct plan *plan = &self->plan[i];
        uint32_t trace;

        if (site->allocs == 0)
            continue;
        trace = put_trace(self, site);
        make_plan(site, plan);
        self->peak_bytes += site->at_peak_bytes;
        if (self->infos == 0) { /* the reader's count of temporary blocks takes 0 for none */
            fprintf(self->out, "a 0 %" PRIx32 "\n", trace);
            self->infos = 1;
        }
        put_sizes(self, &plan->lasting, trace, 1);
        put_sizes(self, &plan->peak, trace, 1);
        put_sizes(self, &plan->late, trace, 1);
        put_sizes(self, &plan->transient, trace, 2);
    }
}

static void put_call(struct heaptrack *self, char sign, uint64_t info)
{
    fprintf(self->out, "%c %" PRIx64 "\n", sign, info);
}

static void put_part(struct heaptrack *self, char sign, const struct part *part)
{
    uint64_t larger = part->amount.count ? part->amount.bytes % part->amount.count : 0;

    for (uint64_t i = 0; i < part->amount.count; i++)
        put_call(self, sign, part->info + (i < larger));
}

/* The reader calls a block temporary that is freed before anything else happens. Whether these were
 * is unknown, so each is freed after the next call, where both fit. */
static void put_passing(struct heaptrack *self, uint64_t info, uint64_t size)
{
    int has_room = self->passing_size + size <= self->peak_bytes;

    if (self->passing && !has_room)
        put_call(self, '-', self->passing);
    put_call(self, '+', info);
    if (self->passing && has_room)
        put_call(self, '-', self->passing);
    self->passing = info;
    self->passing_size = size;
}

/* The two numbers of each size alternate. */
static void put_transient(struct heaptrack *self, const struct part *part, double share)
{
    uint64_t count = part->amount.count;
    uint64_t larger = count ? part->amount.bytes % count : 0;
    uint64_t size = count ? part->amount.bytes / count : 0;

    for (uint64_t i = 0; i < (uint64_t)((double)(count - larger) * share); i++)
        put_passing(self, part->info + (i & 1), size);
    for (uint64_t i = 0; i < (uint64_t)((double)larger * share); i++)
        put_passing(self, part->info + 2 + (i & 1), size + 1);
}

static void put_transients(struct heaptrack *self)
{
    double share = 1, sum = 0;

    for (uint32_t i = 0; i < self->request->sites; i++)
        sum += (double)self->plan[i].transient.amount.count;
    if (sum > CALLS_MAX) {
        share = CALLS_MAX / sum;
        fprintf(self->out, "# %.0f calls whose blocks were freed are thinned out to %d\n", sum,
                CALLS_MAX);
    }
    for (uint32_t i = 0; i < self->request->sites; i++)
        put_transient(self, &self->plan[i].transient, share);
    if (self->passing)
        put_call(self, '-', self->passing);
}

static void put_clock(struct heaptrack *self, uint64_t ns)
{
    fprintf(self->out, "c %" PRIx64 "\n", ns / 1000000);
}

static int compare_peak(const void *a, const void *b)
{
    const struct cw_snapshot_device *x = *(const struct cw_snapshot_device *const *)a;
    const struct cw_snapshot_device *y = *(const struct cw_snapshot_device *const *)b;

    if (x->peak_ns != y->peak_ns)
        return x->peak_ns < y->peak_ns ? -1 : 1;
    return x < y ? -1 : x > y;
}

static void put_at_peak(struct heaptrack *self, const struct plan *plan)
{
    put_part(self, '+', &plan->lasting);
    put_part(self, '+', &plan->peak);
}

static void put_device_peak(struct heaptrack *self, const struct cw_snapshot_device *device)
{
    const struct cw_snapshot *snapshot = &self->model->snapshot;

    put_clock(self, device->peak_ns);
    for (uint32_t i = 0; i < self->request->sites; i++)
        if (&snapshot->device[snapshot->site[self->request->site[i]].device] == device)
            put_at_peak(self, &self->plan[i]);
}

static void put_peaks(struct heaptrack *self)
{
    const struct cw_snapshot *snapshot = &self->model->snapshot;
    const struct cw_snapshot_device *order[CW_DEVICES];
    uint32_t count = 0;

    for (uint32_t i = 0; i < CW_DEVICES; i++)
        if (cw_report_has_device(self->model, i))
            order[count++] = &snapshot->device[i];
    qsort(order, count, sizeof(order[0]), compare_peak);
    for (uint32_t i = 0; i < count; i++)
        put_device_peak(self, order[i]);
    /* The peak of a device that the report does not list has no known time. */
    for (uint32_t i = 0; i < self->request->sites; i++)
        if (!cw_report_has_device(self->model, snapshot->site[self->request->site[i]].device))
            put_at_peak(self, &self->plan[i]);
}

static void put_end(struct heaptrack *self)
{
    put_clock(self, self->model->snapshot.duration_ns);
    for (uint32_t i = 0; i < self->request->sites; i++)
        put_part(self, '-', &self->plan[i].peak);
    for (uint32_t i = 0; i < self->request->sites; i++)
        put_part(self, '+', &self->plan[i].late);
}

/* ---- the whole ---- */

static void put_head(struct heaptrack *self)
{
    uint64_t total = 0;

    for (uint32_t i = 0; i < CW_DEVICES; i++)
        total += self->model->snapshot.device[i].total;
    fprintf(self->out, "v %x %x\nX ", HEAPTRACK_VERSION, FORM_VERSION);
    for (const char *at = self->model->process.command; *at; at++)
        fputc((unsigned char)*at < ' ' ? ' ' : *at, self->out);
    fprintf(self->out, "\nI %x %" PRIx64 "\n", PAGE_SIZE, total / PAGE_SIZE);
}

/* A damaged report may claim more blocks than any disk has room for. */
static int check_blocks(const struct cw_form_request *request)
{
    double blocks = 0;

    for (uint32_t i = 0; i < request->sites; i++) {
        const struct cw_snapshot_site *site = &request->model->snapshot.site[request->site[i]];

        blocks +=
            (double)site->at_peak_blocks + (double)site->live_blocks + (double)site->reclaimed;
    }
    if (blocks <= BLOCKS_MAX)
        return 0;
    cw_cli_error(
        "'%s' has %.0f blocks at its peaks and its end; heaptrack's form has a line for each "
        "block, at most %d: select call sites, or use --format=pprof",
        request->model->source, blocks, BLOCKS_MAX);
    return -1;
}

int cw_form_heaptrack(const struct cw_form_request *request)
{
    struct heaptrack self = {.request = request, .model = request->model, .out = request->out};

    if (check_blocks(request) != 0)
        return CW_FORM_TOLD;
    if (cw_calls_init(&self.calls, self.model) != 0)
        return CW_FORM_TOLD;
    self.ip = calloc((size_t)self.calls.count + 1, sizeof(*self.ip));
    self.plan = calloc(request->sites + 1, sizeof(*self.plan));
    if (self.ip && self.plan) {
        put_head(&self);
        put_apis(&self);
        put_plans(&self);
        put_transients(&self);
        put_peaks(&self);
        put_end(&self);
    } else {
        self.failed = 1;
    }
    if (self.failed)
        cw_cli_error("'%s': out of memory", self.model->source);
    if (self.strings.failed || self.apis.failed)
        self.failed = 1;
    cw_strings_free(&self.strings);
    cw_strings_free(&self.apis);
    cw_calls_free(&self.calls);
    free(self.ip);
    free(self.node);
    free(self.plan);
    if (self.failed)
        return CW_FORM_TOLD;
    return ferror(self.out) ? -1 : 0;
}
