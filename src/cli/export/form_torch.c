/* SPDX-License-Identifier: MIT */
/*
 * The live blocks as a snapshot of PyTorch's allocator: a pickle for
 * https://pytorch.org/memory_viz. Each block is its own segment, as the driver allocated it; if the
 * pool's block is larger than requested, the viewer shows the rest as lost to rounding. The traces
 * have the blocks in order of allocation. Host memory is omitted: the viewer knows only devices.
 * https://docs.pytorch.org/docs/stable/torch_cuda_memory.html
 */
#include "cli/export/form.h"

#include <stdlib.h>
#include <stdint.h>

#include "base/compiler.h"
#include "cli/export/pickle.h"
#include "cli/model/calls.h"
#include "cli/ui/message.h"
#include "live/view.h"

#define FRAME_NAME_MAX 512
#define NO_MEMO        UINT32_MAX

struct torch {
    const struct cw_form_request *request;
    const struct cw_report_model *model;
    struct cw_calls calls;
    struct cw_pickle pickle;
    uint8_t *is_shown;    /* by site */
    uint32_t *call_memo;  /* by call */
    uint32_t *stack_memo; /* by its number */
    uint32_t *block;      /* to show, by birth */
    uint32_t blocks;
    uint32_t devices; /* highest ordinal + 1 */
};

/* ---- fields ---- */

static void put_number(struct torch *torch, const char *key, uint64_t value)
{
    cw_pickle_text(&torch->pickle, key);
    cw_pickle_number(&torch->pickle, value);
    cw_pickle_set(&torch->pickle);
}

static void put_text(struct torch *torch, const char *key, const char *value)
{
    cw_pickle_text(&torch->pickle, key);
    cw_pickle_text(&torch->pickle, value);
    cw_pickle_set(&torch->pickle);
}

/* ---- calls and stacks, each once ---- */

static void put_frame(struct torch *torch, uint32_t at)
{
    const struct cw_call *call = &torch->calls.call[at];
    char buf[FRAME_NAME_MAX];

    if (torch->call_memo[at] != NO_MEMO) {
        cw_pickle_recall(&torch->pickle, torch->call_memo[at]);
        return;
    }
    cw_pickle_dictionary(&torch->pickle);
    put_text(torch, "name", cw_call_name(&torch->calls, at, buf, sizeof(buf)));
    put_text(torch, "filename",
             call->file[0] ? call->file : cw_report_module_name(torch->model, call->module + 1));
    put_number(torch, "line", call->line);
    torch->call_memo[at] = cw_pickle_remember(&torch->pickle);
}

static void put_stack(struct torch *torch, uint32_t number)
{
    const struct cw_call_stack *stack = cw_calls_stack(&torch->calls, number);

    if (torch->stack_memo[number] != NO_MEMO) {
        cw_pickle_recall(&torch->pickle, torch->stack_memo[number]);
        return;
    }
    cw_pickle_list(&torch->pickle);
    for (uint32_t i = 0; i < stack->count; i++) {
        put_frame(torch, torch->calls.stack_call[stack->first + i]);
        cw_pickle_append(&torch->pickle);
    }
    torch->stack_memo[number] = cw_pickle_remember(&torch->pickle);
}

static const struct cw_snapshot_site *site_of(const struct torch *torch, uint32_t block)
{
    return &torch->model->snapshot.site[torch->model->block[block].site];
}

static void put_frames(struct torch *torch, uint32_t stack)
{
    cw_pickle_text(&torch->pickle, "frames");
    if (stack != 0 && stack <= torch->model->stacks)
        put_stack(torch, stack);
    else
        cw_pickle_list(&torch->pickle);
    cw_pickle_set(&torch->pickle);
}

/* ---- segments ---- */

static uint64_t size_of(const struct cw_report_block *block)
{
    return block->held > block->bytes ? block->held : block->bytes;
}

static void put_block(struct torch *torch, uint32_t at)
{
    const struct cw_report_block *block = &torch->model->block[at];

    cw_pickle_dictionary(&torch->pickle);
    put_number(torch, "address", block->address);
    put_number(torch, "size", size_of(block));
    put_number(torch, "requested_size", block->bytes);
    put_text(torch, "state", "active_allocated");
    put_frames(torch, site_of(torch, at)->stack);
}

static void put_segment(struct torch *torch, uint32_t at)
{
    const struct cw_report_block *block = &torch->model->block[at];

    cw_pickle_dictionary(&torch->pickle);
    put_number(torch, "device", site_of(torch, at)->device);
    put_number(torch, "address", block->address);
    put_number(torch, "total_size", size_of(block));
    put_number(torch, "allocated_size", size_of(block));
    put_number(torch, "active_size", size_of(block));
    put_number(torch, "requested_size", block->bytes);
    put_number(torch, "stream", 0);
    put_text(torch, "segment_type", cw_kind_name(site_of(torch, at)->kind));
    cw_pickle_text(&torch->pickle, "is_expandable");
    cw_pickle_false(&torch->pickle);
    cw_pickle_set(&torch->pickle);
    put_frames(torch, site_of(torch, at)->stack);
    cw_pickle_text(&torch->pickle, "blocks");
    cw_pickle_list(&torch->pickle);
    put_block(torch, at);
    cw_pickle_append(&torch->pickle);
    cw_pickle_set(&torch->pickle);
}

static void put_segments(struct torch *torch)
{
    cw_pickle_text(&torch->pickle, "segments");
    cw_pickle_list(&torch->pickle);
    for (uint32_t i = 0; i < torch->blocks; i++) {
        put_segment(torch, torch->block[i]);
        cw_pickle_append(&torch->pickle);
    }
    cw_pickle_set(&torch->pickle);
}

/* ---- traces ---- */

static void put_arrival(struct torch *torch, const char *action, uint32_t at, uint64_t size)
{
    const struct cw_report_block *block = &torch->model->block[at];
    uint64_t t_ns = torch->model->process.start_realtime_ns + block->born_ns;

    cw_pickle_dictionary(&torch->pickle);
    put_text(torch, "action", action);
    put_number(torch, "addr", block->address);
    put_number(torch, "size", size);
    put_number(torch, "stream", 0);
    put_number(torch, "time_us", t_ns / 1000);
    put_frames(torch, site_of(torch, at)->stack);
    cw_pickle_append(&torch->pickle);
}

static void put_trace(struct torch *torch, uint32_t device)
{
    cw_pickle_list(&torch->pickle);
    for (uint32_t i = 0; i < torch->blocks; i++) {
        uint32_t at = torch->block[i];

        if (site_of(torch, at)->device != device)
            continue;
        put_arrival(torch, "segment_alloc", at, size_of(&torch->model->block[at]));
        put_arrival(torch, "alloc", at, torch->model->block[at].bytes);
    }
    cw_pickle_append(&torch->pickle);
}

static void put_traces(struct torch *torch)
{
    cw_pickle_text(&torch->pickle, "device_traces");
    cw_pickle_list(&torch->pickle);
    for (uint32_t device = 0; device < torch->devices; device++)
        put_trace(torch, device);
    cw_pickle_set(&torch->pickle);
}

/* ---- the snapshot ---- */

static const struct cw_report_model *ordered; /* the model whose blocks are being sorted */

static int compare_birth(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    uint64_t x_ns = ordered->block[x].born_ns, y_ns = ordered->block[y].born_ns;

    if (x_ns != y_ns)
        return x_ns < y_ns ? -1 : 1;
    return x < y ? -1 : 1;
}

static void find_blocks(struct torch *torch)
{
    const struct cw_report_model *model = torch->model;

    for (uint32_t i = 0; i < torch->request->sites; i++)
        torch->is_shown[torch->request->site[i]] = 1;
    for (uint32_t i = 0; i < model->blocks; i++) {
        uint32_t site = model->block[i].site;

        if (site < model->snapshot.sites && torch->is_shown[site] &&
            model->snapshot.site[site].device < CW_DEVICE_HOST && model->block[i].address != 0)
            torch->block[torch->blocks++] = i;
    }
    ordered = model;
    qsort(torch->block, torch->blocks, sizeof(*torch->block), compare_birth);
    for (uint32_t i = 0; i < CW_DEVICE_HOST; i++)
        if (cw_report_has_device(model, i))
            torch->devices = i + 1;
    for (uint32_t i = 0; i < torch->blocks; i++)
        if (site_of(torch, torch->block[i])->device >= torch->devices)
            torch->devices = site_of(torch, torch->block[i])->device + 1u;
}

static int put_all(struct torch *torch)
{
    find_blocks(torch);
    cw_pickle_begin(&torch->pickle, torch->request->out);
    cw_pickle_dictionary(&torch->pickle);
    put_segments(torch);
    put_traces(torch);
    return cw_pickle_end(&torch->pickle);
}

static uint32_t *make_memo(uint32_t count)
{
    uint32_t *memo = malloc(((size_t)count + 1) * sizeof(*memo));

    for (uint32_t i = 0; memo && i < count; i++)
        memo[i] = NO_MEMO;
    return memo;
}

int cw_form_torch(const struct cw_form_request *request)
{
    const struct cw_report_model *model = request->model;
    struct torch torch = {.request = request, .model = model};
    int rc = -1;

    if (cw_calls_init(&torch.calls, model) != 0)
        return CW_FORM_TOLD;
    torch.is_shown = calloc((size_t)model->snapshot.sites + 1, 1);
    torch.block = calloc((size_t)model->blocks + 1, sizeof(*torch.block));
    torch.call_memo = make_memo(torch.calls.count);
    torch.stack_memo = make_memo(model->stacks + 1);
    if (torch.is_shown && torch.block && torch.call_memo && torch.stack_memo)
        rc = put_all(&torch);
    else
        cw_cli_error("'%s': out of memory", model->source);
    if (rc != 0 && !ferror(request->out))
        rc = CW_FORM_TOLD;
    cw_calls_free(&torch.calls);
    free(torch.is_shown);
    free(torch.block);
    free(torch.call_memo);
    free(torch.stack_memo);
    return rc;
}
