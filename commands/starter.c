/* Starts a command of tfprof in a Python that does not see the variables for the job's Python.
 *
 * The program's file has the name of the command. A program is needed because Python's variables
 * act before any Python code runs, and because a shell may change the environment. The file
 * tfprof-isolated lies beside the program; its first line names the Python that tfprof was installed
 * with. */
#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define ISOLATED "tfprof-isolated"
/* The names of variables for the job get this prefix; commands/environment.py removes it. */
#define SAVED "_TFPROF_JOB_"

extern char **environ;

/* Beginnings of the names of variables that Python, its standard library, or its allocator read. Some act even with -I:
 * PYTHONEXECUTABLE and __PYVENV_LAUNCHER__ replace sys.executable and the environment's packages, PYTHONUSERBASE the
 * user's packages, and _PYTHON_SYSCONFIGDATA_NAME the build's settings. */
static const char *const steering[] = {"PYTHON", "_PYTHON_", "__PYVENV_LAUNCHER__=", "MIMALLOC_", "mimalloc_"};

static int fail(const char *what) {
    fprintf(stderr, "tfprof: %s: %s\n", what, strerror(errno));
    return 127;
}

/* Copies the path of the interpreter from the first line of `path`, "#!/a/b/python", to `python`. */
static void read_interpreter(const char *path, char *python) {
    char line[PATH_MAX + 4];
    FILE *file = fopen(path, "re");
    if (file == NULL)
        return;
    if (fgets(line, sizeof line, file) != NULL && strncmp(line, "#!/", 3) == 0) {
        line[strcspn(line, "\r\n")] = '\0';
        /* Installers write "#!/bin/sh" where the path of Python is too long for a first line. */
        if (strncmp(line, "#!/bin/sh", 9) != 0 && strlen(line + 2) < PATH_MAX)
            strcpy(python, line + 2);
    }
    fclose(file);
}

/* Renames the variables that steer Python. Returns whether there was memory for that. */
static int save_variables(void) {
    for (char **entry = environ; *entry != NULL; entry++)
        for (size_t at = 0; at < sizeof steering / sizeof *steering; at++)
            if (strncmp(*entry, steering[at], strlen(steering[at])) == 0) {
                char *saved = malloc(sizeof SAVED + strlen(*entry));
                if (saved == NULL)
                    return 0;
                *entry = strcat(strcpy(saved, SAVED), *entry);
                break;
            }
    return 1;
}

/* Blocks Ctrl-C until isolated.py lets it end the process silently. Returns whether Ctrl-C was unblocked before. */
static int hold_interrupt(void) {
    sigset_t interrupt, before;
    sigemptyset(&interrupt);
    sigaddset(&interrupt, SIGINT);
    return sigprocmask(SIG_BLOCK, &interrupt, &before) == 0 && !sigismember(&before, SIGINT);
}

int main(int argc, char **argv) {
    struct stat input;
    if (fstat(STDIN_FILENO, &input) == 0 && S_ISDIR(input.st_mode)) {
        /* Python itself would fail with a message of several lines. */
        fprintf(stderr, "tfprof: standard input is a folder [usage]\n");
        return 2;
    }
    char self[PATH_MAX], python[PATH_MAX] = "", isolated[PATH_MAX];
    ssize_t length = readlink("/proc/self/exe", self, sizeof self - 1);
    if (length < 0)
        return fail("/proc/self/exe");
    self[length] = '\0';
    char *name = strrchr(self, '/') + 1;
    int folder_length = (int)(name - self);
    if (folder_length + sizeof ISOLATED > sizeof isolated) {
        errno = ENAMETOOLONG;
        return fail(self);
    }
    snprintf(isolated, sizeof isolated, "%.*s%s", folder_length, self, ISOLATED);
    read_interpreter(isolated, python);
    if (python[0] == '\0')
        snprintf(python, sizeof python, "%.*s%s", folder_length, self, "python3");
    char **words = calloc((size_t)argc + 7, sizeof *words);
    if (words == NULL || !save_variables())
        return fail(self);
    char *head[] = {python, "-I", "-S", "-X", hold_interrupt() ? "tfprof=held" : "tfprof", isolated, name};
    memcpy(words, head, sizeof head);
    for (int at = 1; at < argc; at++)
        words[at + 6] = argv[at];
    execv(python, words);
    return fail(python);
}
