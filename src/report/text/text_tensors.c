/* SPDX-License-Identifier: MIT */
/*
 * The sections HELD and TENSORS. See text_sections.h.
 *
 * Memory that objects of Python hold to the end is no leak, but it may be what the user looks for.
 * Of tensors in PyTorch's cache only PyTorch knows; a row of them is a line of the program.
 */
#include <string.h>

#include "report/symbols/stack.h"
#include "report/text/text_sections.h"
#include "report/text/text_table.h"

#define ROWS_MAX 20
#define HELD_MAX 10

enum { PEAK, COUNT, AT_EXIT, DEVICE, WHERE, COLUMNS };

static void format_size(char *cell, uint64_t bytes)
{
    if (bytes == 0)
        strcpy(cell, "-");
    else
        cw_format_size(cell, CW_TEXT_CELL_MAX, bytes);
}

static void format_where(const struct cw_report_tensor *row, char *cell)
{
    struct cw_out out;

    if (!row->file) {
        strcpy(cell, "C++ (autograd)");
        return;
    }
    cw_out_init(&out, -1, cell, CW_TEXT_CELL_MAX);
    cw_text_clean(&(struct cw_text){.out = &out}, row->function ? row->function : "?", 32);
    cw_out_char(&out, ' ');
    cw_text_clean(&(struct cw_text){.out = &out}, cw_short_file(row->file), 20);
    cw_out_printf(&out, ":%u", row->line);
    cell[out.len < CW_TEXT_CELL_MAX ? out.len : CW_TEXT_CELL_MAX - 1] = '\0';
}

static void format_cell(const struct cw_text *text, uint32_t at, unsigned column, char *cell)
{
    const struct cw_report_tensor *row = &text->model->tensors.row[at];

    switch (column) {
    case PEAK:
        format_size(cell, row->peak_bytes);
        break;
    case COUNT:
        cw_format(cell, CW_TEXT_CELL_MAX, "%ju", (uintmax_t)row->peak_tensors);
        break;
    case AT_EXIT:
        format_size(cell, row->exit_bytes);
        break;
    case DEVICE:
        cw_format(cell, CW_TEXT_CELL_MAX, "%u", row->device);
        break;
    default:
        format_where(row, cell);
    }
}

static int is_on_one_device(const struct cw_report_tensors *tensors)
{
    for (uint32_t i = 1; i < tensors->rows; i++)
        if (tensors->row[i].device != tensors->row[0].device)
            return 0;
    return 1;
}

static void put_rows(const struct cw_text *text)
{
    static const char *const title[COLUMNS] = {"PEAK", "TENSORS", "AT EXIT", "DEVICE", "LINE"};
    const struct cw_report_tensors *tensors = &text->model->tensors;
    struct cw_text_table table = {
        .title = title, .columns = COLUMNS, .left = 1u << WHERE, .format = format_cell};
    uint32_t rows[ROWS_MAX], shown = tensors->rows < ROWS_MAX ? tensors->rows : ROWS_MAX;
    uint64_t rest = 0;

    if (is_on_one_device(tensors))
        table.hidden |= 1u << DEVICE;
    if (!tensors->has_exit)
        table.hidden |= 1u << AT_EXIT;
    for (uint32_t i = 0; i < shown; i++)
        rows[i] = i;
    cw_text_table(text, &table, rows, shown);
    for (uint32_t i = shown; i < tensors->rows; i++)
        rest += tensors->row[i].peak_bytes;
    if (shown == tensors->rows)
        return;
    cw_text_begin_line(text);
    cw_out_string(text->out, "  ... ");
    cw_text_count(text, tensors->rows - shown, "more line");
    cw_out_string(text->out, ", ");
    cw_text_size(text, rest);
    cw_text_end_line(text);
}

static void put_heading(const struct cw_text *text)
{
    const struct cw_report_tensors *tensors = &text->model->tensors;

    cw_text_size(text, tensors->peak_bytes);
    cw_out_string(text->out, " in ");
    cw_text_count(text, tensors->peak_tensors, "tensor");
    cw_out_string(text->out, " of ");
    cw_text_clean(text, tensors->framework, CW_TEXT_NAME_MAX);
    cw_out_string(text->out, " at ");
    cw_text_time(text, tensors->peak_ns);
    cw_out_string(text->out, ", in ");
    cw_text_count(text, tensors->segments, "segment");
    cw_out_string(text->out, " of ");
    cw_text_size(text, tensors->segment_bytes);
    cw_text_end_line(text);
}

void cw_text_tensors(const struct cw_text *text)
{
    const struct cw_report_tensors *tensors = &text->model->tensors;

    if (!tensors->framework)
        return;
    cw_text_heading(text, "TENSORS  ");
    if (tensors->error) {
        cw_out_string(text->out, "not known: ");
        cw_text_clean(text, tensors->error, CW_TEXT_NAME_MAX);
        cw_text_end_line(text);
        return;
    }
    put_heading(text);
    put_rows(text);
}

void cw_text_held(const struct cw_text *text)
{
    uint32_t site[HELD_MAX], count = cw_report_held(text->model, site, HELD_MAX);
    uint32_t shown = count < HELD_MAX ? count : HELD_MAX;
    uint64_t rest = text->snapshot->summary.held_bytes;
    struct cw_text_list list;
    char size[24];

    if (count == 0)
        return;
    cw_text_heading(text, "HELD UNTIL EXIT  ");
    cw_text_size(text, rest);
    cw_out_string(text->out, ", not counted as leaked: Python freed it as it ended\n");
    cw_text_begin_list(text, site, sizeof(*site), shown, &list);
    for (uint32_t i = 0; i < shown; i++) {
        const struct cw_snapshot_site *held = &text->snapshot->site[site[i]];

        cw_text_begin_line(&list.text);
        cw_out_printf(text->out, "  %10s  site %08x  ",
                      cw_format_size(size, sizeof(size), held->held_until_exit), held->id);
        cw_text_where(&list.text, held->stack);
        cw_text_end_line(&list.text);
        rest -= held->held_until_exit < rest ? held->held_until_exit : rest;
    }
    cw_text_end_list(&list);
    if (count > shown)
        cw_text_line(text, "  ... %u more sites, %s", count - shown,
                     cw_format_size(size, sizeof(size), rest));
}
