/* SPDX-License-Identifier: MIT */
/*
 * `cuwarden completion SHELL`: a script by which the shell completes commands, flags and their
 * values. It is made from what each command's --help says, so it cannot lag behind.
 */
#include "cli/cli.h"

#include <getopt.h>
#include <string.h>

#include "cli/ui/help_text.h"

static int print_help(void)
{
    printf("Usage: cuwarden completion bash|zsh|fish\n"
           "Print a script by which the shell completes the command line of cuwarden:\n"
           "for bash and zsh 'source <(cuwarden completion bash)', for fish\n"
           "'cuwarden completion fish | source'. An installed cuwarden has put it in its place.\n"
           "\n"
           "  -h, --help  display this help and exit\n");
    return CW_EXIT_OK;
}

/* ---- bash ---- */

static const char bash_begin[] =
    "# cuwarden(1) completion for bash, made by 'cuwarden completion bash'.\n"
    "_cuwarden_processes()\n"
    "{\n"
    "  local directory file\n"
    "  for directory in \"${CUWARDEN_LIVE:-/}\" \"/dev/shm/cuwarden-$UID\" "
    "\"${TMPDIR:-/tmp}/cuwarden-$UID\"; do\n"
    "    for file in \"$directory\"/*.live; do\n"
    "      file=${file##*/}\n"
    "      case $file in [0-9]*-*) echo \"${file%%-*}\" ;; esac\n"
    "    done\n"
    "  done\n"
    "}\n"
    "\n"
    "_cuwarden()\n"
    "{\n"
    "  local cur=${COMP_WORDS[COMP_CWORD]} flag= at command=${COMP_WORDS[1]-} first=0\n"
    "  local flags= takes= operands= words= values= kind=\n"
    "  COMPREPLY=()\n"
    "  # bash takes '=' for a word of its own.\n"
    "  if [ \"$cur\" = = ]; then\n"
    "    cur= flag=${COMP_WORDS[COMP_CWORD-1]}\n"
    "  elif [ \"$COMP_CWORD\" -gt 2 ] && [ \"${COMP_WORDS[COMP_CWORD-1]}\" = = ]; then\n"
    "    flag=${COMP_WORDS[COMP_CWORD-2]}\n"
    "  fi\n";

static const char bash_end[] =
    "    *) return ;;\n"
    "  esac\n"
    "  # A value may be a word of its own too.\n"
    "  at=${COMP_WORDS[COMP_CWORD-1]}\n"
    "  case $flag:$at in :-*) case \" $takes \" in *\" $at \"*) flag=$at ;; esac ;; esac\n"
    "  [ -z \"$flag\" ] || _cuwarden_value \"$command$flag\"\n"
    "  case $kind in\n"
    "    file) compopt -o filenames 2>/dev/null; COMPREPLY=($(compgen -f -- \"$cur\")); return ;;\n"
    "    directory) compopt -o filenames 2>/dev/null; COMPREPLY=($(compgen -d -- \"$cur\")); "
    "return ;;\n"
    "    words) COMPREPLY=($(compgen -W \"$values\" -- \"$cur\")); return ;;\n"
    "    other) return ;;\n"
    "  esac\n"
    "  # The first operand, where the command runs a program: what follows is that program's.\n"
    "  for ((at = 2; at < COMP_CWORD; at++)); do\n"
    "    case ${COMP_WORDS[at]} in\n"
    "      --) first=$((at + 1)); break ;;\n"
    "      =) at=$((at + 1)) ;;\n"
    "      -*) case \" $takes \" in *\" ${COMP_WORDS[at]} \"*)\n"
    "        [ \"${COMP_WORDS[at+1]-}\" = = ] || at=$((at + 1)) ;; esac ;;\n"
    "      *) first=$at; break ;;\n"
    "    esac\n"
    "  done\n"
    "  case $operands in\n"
    "    *program*)\n"
    "      if [ \"$first\" -gt 0 ] && [ \"$first\" -lt \"$COMP_CWORD\" ]; then\n"
    "        if declare -F _command_offset >/dev/null; then _command_offset \"$first\"; return; "
    "fi\n"
    "        compopt -o filenames 2>/dev/null; COMPREPLY=($(compgen -f -- \"$cur\")); return\n"
    "      fi ;;\n"
    "  esac\n"
    "  case $cur in\n"
    "    -*)\n"
    "      if [ \"$first\" = 0 ]; then\n"
    "        COMPREPLY=($(compgen -W \"$flags\" -- \"$cur\"))\n"
    "        case ${COMPREPLY[0]-} in *=) compopt -o nospace 2>/dev/null ;; esac\n"
    "        return\n"
    "      fi ;;\n"
    "  esac\n"
    "  COMPREPLY=($(compgen -W \"$words\" -- \"$cur\"))\n"
    "  case $operands in *pid*) COMPREPLY+=($(compgen -W \"$(_cuwarden_processes)\" -- \"$cur\")) "
    ";; "
    "esac\n"
    "  # As names of files they would be quoted, and end in a blank.\n"
    "  if [ -n \"$cur\" ] && [ ${#COMPREPLY[@]} -gt 0 ]; then\n"
    "    case ${COMPREPLY[0]} in *=) compopt -o nospace 2>/dev/null ;; esac\n"
    "    return\n"
    "  fi\n"
    "  case $operands in *program*) COMPREPLY+=($(compgen -c -- \"$cur\")) ;; esac\n"
    "  case $operands in *program* | *file*)\n"
    "    compopt -o filenames 2>/dev/null; COMPREPLY+=($(compgen -f -- \"$cur\")) ;;\n"
    "  esac\n"
    "}\n"
    "complete -F _cuwarden cuwarden\n";

static void print_bash_values(const char *command, const struct cw_help *help)
{
    static const char *const kinds[] = {
        [CW_HELP_VALUE_FILE] = "file",
        [CW_HELP_VALUE_DIRECTORY] = "directory",
        [CW_HELP_VALUE_OTHER] = "other",
    };

    for (size_t i = 0; i < help->flags; i++) {
        const struct cw_help_flag *flag = &help->flag[i];

        if (flag->value == CW_HELP_VALUE_NONE)
            continue;
        printf("    %s--%s", command, flag->name);
        if (flag->letter)
            printf(" | %s-%c", command, flag->letter);
        if (*flag->words)
            printf(") kind=words values='%s' ;;\n", flag->words);
        else
            printf(") kind=%s ;;\n", kinds[flag->value]);
    }
}

static void print_bash_command(const char *command, const struct cw_help *help)
{
    printf("    %s)\n      flags='", command);
    for (size_t i = 0; i < help->flags; i++)
        printf("%s--%s%s", i > 0 ? " " : "", help->flag[i].name,
               help->flag[i].value == CW_HELP_VALUE_NONE ? "" : "=");
    printf("'\n      takes='");
    for (size_t i = 0; i < help->flags; i++) {
        if (help->flag[i].value == CW_HELP_VALUE_NONE)
            continue;
        printf("--%s ", help->flag[i].name);
        if (help->flag[i].letter)
            printf("-%c ", help->flag[i].letter);
    }
    printf("'\n      operands='%s%s%s' words='%s' ;;\n", help->operands.program ? "program " : "",
           help->operands.pid ? "pid " : "", help->operands.file ? "file " : "",
           help->operands.words);
}

static void print_bash(const struct cw_command *commands, const struct cw_help *help, size_t count)
{
    fputs(bash_begin, stdout);
    printf("  if [ \"$COMP_CWORD\" -le 1 ]; then\n    COMPREPLY=($(compgen -W '");
    for (size_t i = 0; i < count; i++)
        printf("%s ", commands[i].name);
    printf("--help --version' -- \"$cur\"))\n    return\n  fi\n  case $command in\n");
    for (size_t i = 0; i < count; i++)
        print_bash_command(commands[i].name, &help[i]);
    fputs(bash_end, stdout);
    printf("\n_cuwarden_value()\n{\n  case $1 in\n");
    for (size_t i = 0; i < count; i++)
        print_bash_values(commands[i].name, &help[i]);
    printf("    *) return 0 ;;\n  esac\n}\n");
}

/* ---- zsh ---- */

/* Inside '...' of the shell, where zsh gives colons and brackets a meaning. */
static void put_zsh_text(const char *text)
{
    for (; *text; text++) {
        if (*text == '\'')
            fputs("'\\''", stdout);
        else if (strchr("[]:\\", *text))
            printf("\\%c", *text);
        else
            putchar(*text);
    }
}

static void print_zsh_action(const struct cw_help_flag *flag)
{
    if (flag->value == CW_HELP_VALUE_NONE)
        return;
    printf(":value:");
    if (*flag->words)
        printf("(%s)", flag->words);
    else if (flag->value != CW_HELP_VALUE_OTHER)
        printf("%s", flag->value == CW_HELP_VALUE_FILE ? "_files" : "_files -/");
    else
        putchar(' ');
}

static void print_zsh_flag(const struct cw_help_flag *flag)
{
    const char *equals = flag->value == CW_HELP_VALUE_NONE ? "" : "=";

    if (flag->letter) {
        printf(" \\\n        '-%c%s[", flag->letter, *equals ? "+" : "");
        put_zsh_text(flag->help);
        printf("]");
        print_zsh_action(flag);
        printf("'");
    }
    printf(" \\\n        '--%s%s[", flag->name, equals);
    put_zsh_text(flag->help);
    printf("]");
    print_zsh_action(flag);
    printf("'");
}

static void print_zsh_operands(const struct cw_help_operands *operands)
{
    if (operands->program)
        printf(" \\\n        '(-)1:program:_cuwarden_program' '*::arguments: _normal'");
    else if (operands->pid || operands->file || *operands->words)
        printf(" \\\n        '*:operand: _cuwarden_operands %d %d \"%s\"'", operands->pid,
               operands->file, operands->words);
}

static void print_zsh(const struct cw_command *commands, const struct cw_help *help, size_t count)
{
    printf("#compdef cuwarden\n"
           "# cuwarden(1) completion for zsh, made by 'cuwarden completion zsh'.\n"
           "_cuwarden_operands()\n"
           "{\n"
           "  local -a words pids\n"
           "  words=(${=3})\n"
           "  [[ $1 = 0 ]] || pids=(/dev/shm/cuwarden-$UID/*.live(N:t) "
           "${TMPDIR:-/tmp}/cuwarden-$UID/*.live(N:t))\n"
           "  compadd -S '' -- ${(M)words:#*=}\n"
           "  compadd -- ${words:#*=}\n"
           "  compadd -- ${pids%%%%-*}\n"
           "  [[ $2 = 0 ]] || _files\n"
           "}\n"
           "\n"
           "_cuwarden_program()\n"
           "{\n"
           "  _alternative 'commands:program:_command_names -e' files:program:_files\n"
           "}\n"
           "\n"
           "_cuwarden()\n"
           "{\n"
           "  local -a names\n"
           "  if (( CURRENT == 2 )); then\n"
           "    names=(\n");
    for (size_t i = 0; i < count; i++) {
        printf("      '%s:", commands[i].name);
        put_zsh_text(commands[i].summary);
        printf("'\n");
    }
    printf("    )\n"
           "    _describe command names\n"
           "    return\n"
           "  fi\n"
           "  local command=$words[2]\n"
           "  shift words\n"
           "  (( CURRENT-- ))\n"
           "  case $command in\n");
    for (size_t i = 0; i < count; i++) {
        printf("    %s)\n      _arguments -S", commands[i].name);
        for (size_t j = 0; j < help[i].flags; j++)
            print_zsh_flag(&help[i].flag[j]);
        print_zsh_operands(&help[i].operands);
        printf(" ;;\n");
    }
    printf("  esac\n"
           "}\n"
           "\n"
           "if [ \"$funcstack[1]\" = _cuwarden ]; then _cuwarden \"$@\"; "
           "else compdef _cuwarden cuwarden; fi\n");
}

/* ---- fish ---- */

static void put_fish_text(const char *text)
{
    putchar('\'');
    for (; *text; text++) {
        if (*text == '\'' || *text == '\\')
            putchar('\\');
        putchar(*text);
    }
    putchar('\'');
}

static void print_fish_flag(const char *command, const struct cw_help_flag *flag)
{
    printf("complete -c cuwarden -n '__cuwarden_in %s' -l %s", command, flag->name);
    if (flag->letter)
        printf(" -s %c", flag->letter);
    if (flag->value == CW_HELP_VALUE_FILE)
        printf(" -r -F");
    else if (flag->value == CW_HELP_VALUE_DIRECTORY)
        printf(" -x -a '(__fish_complete_directories)'");
    else if (flag->value == CW_HELP_VALUE_OTHER)
        printf(" -x");
    if (*flag->words)
        printf(" -a '%s'", flag->words);
    printf(" -d ");
    put_fish_text(flag->help);
    putchar('\n');
}

static void print_fish_operands(const char *command, const struct cw_help_operands *operands)
{
    if (operands->program)
        printf("complete -c cuwarden -n '__cuwarden_in %s' -x -a "
               "'(__fish_complete_subcommand --fcs-skip=2)'\n",
               command);
    if (operands->pid)
        printf("complete -c cuwarden -n '__cuwarden_in %s' -a '(__cuwarden_processes)'\n", command);
    if (operands->file)
        printf("complete -c cuwarden -n '__cuwarden_in %s' -F\n", command);
    if (*operands->words)
        printf("complete -c cuwarden -n '__cuwarden_in %s' -a '%s'\n", command, operands->words);
}

static void print_fish(const struct cw_command *commands, const struct cw_help *help, size_t count)
{
    printf("# cuwarden(1) completion for fish, made by 'cuwarden completion fish'.\n"
           "function __cuwarden_in\n"
           "    set -l words (commandline -opc)\n"
           "    test (count $words) -gt 1; and test $words[2] = $argv[1]\n"
           "end\n"
           "\n"
           "function __cuwarden_processes\n"
           "    for file in /dev/shm/cuwarden-(id -u)/*.live\n"
           "        string replace -r '.*/([0-9]+)-.*' '$1' $file\n"
           "    end\n"
           "end\n"
           "\n"
           "complete -c cuwarden -f\n"
           "complete -c cuwarden -n __fish_use_subcommand -s h -l help -d 'display help'\n"
           "complete -c cuwarden -n __fish_use_subcommand -s V -l version -d 'output version'\n");
    for (size_t i = 0; i < count; i++) {
        printf("complete -c cuwarden -n __fish_use_subcommand -a %s -d ", commands[i].name);
        put_fish_text(commands[i].summary);
        putchar('\n');
        for (size_t j = 0; j < help[i].flags; j++)
            print_fish_flag(commands[i].name, &help[i].flag[j]);
        print_fish_operands(commands[i].name, &help[i].operands);
    }
}

/* ---- all ---- */

static const struct shell {
    const char *name;
    void (*print)(const struct cw_command *commands, const struct cw_help *help, size_t count);
} shells[] = {
    {"bash", print_bash},
    {"zsh", print_zsh},
    {"fish", print_fish},
};

static const struct shell *find_shell(const char *name)
{
    for (size_t i = 0; i < CW_ARRAY_LEN(shells); i++) {
        if (strcmp(shells[i].name, name) == 0)
            return &shells[i];
    }
    cw_cli_error("'%s' is not one of bash, zsh, fish", name);
    return NULL;
}

static int print_script(const struct shell *shell)
{
    static struct cw_help help[CW_CLI_COMMANDS_MAX];
    size_t count, read = 0;
    const struct cw_command *commands = cw_cli_commands(&count);

    while (read < count && cw_help_read(&help[read], &commands[read]) == 0)
        read++;
    if (read == count)
        shell->print(commands, help, count);
    for (size_t i = 0; i < read; i++)
        cw_help_free(&help[i]);
    return read == count ? CW_EXIT_OK : CW_EXIT_FAILURE;
}

int cw_cmd_completion(int argc, char **argv)
{
    static const struct option flags[] = {
        {"help", no_argument, NULL, 'h'},
        {NULL, 0, NULL, 0},
    };
    const struct shell *shell;
    int flag;

    while ((flag = getopt_long(argc, argv, "h", flags, NULL)) != -1)
        return flag == 'h' ? print_help() : cw_cli_usage_error();
    if (optind == argc)
        cw_cli_error("missing shell: bash, zsh or fish");
    else if (optind + 1 < argc)
        cw_cli_error("extra operand '%s'", argv[optind + 1]);
    shell = optind + 1 == argc ? find_shell(argv[optind]) : NULL;
    return shell ? print_script(shell) : cw_cli_usage_error();
}
