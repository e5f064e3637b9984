/* A libsimplex whose core is the test: each call is a connection to the socket named by FAKE_CORE, one letter and
 * the arguments out, the text of the answer back. What it allocates and what is freed of it are counted. */

#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

static atomic_long allocated, freed, started, busy;

long fake_allocated(void) { return allocated; }
long fake_freed(void) { return freed; }
long fake_started(void) { return started; }
long fake_busy(void) { return busy; }
void fake_reset(void) { allocated = freed = started = 0; }

/* Found before libc's by whoever asks this library for it. */
void free(void *block) {
    static void (*next)(void *);
    if (!next) next = (void (*)(void *))dlsym(RTLD_NEXT, "free");
    if (block) freed++;
    next(block);
}

static int send_part(int fd, const void *data, size_t size) {
    const char *at = data;
    while (size > 0) {
        ssize_t n = write(fd, at, size);
        if (n <= 0) return -1;
        at += n;
        size -= (size_t)n;
    }
    return 0;
}

static int receive_part(int fd, void *data, size_t size) {
    char *at = data;
    while (size > 0) {
        ssize_t n = read(fd, at, size);
        if (n <= 0) return -1;
        at += n;
        size -= (size_t)n;
    }
    return 0;
}

/* NULL when the core closes the connection without an answer. */
static char *ask(char what, const char *argument) {
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    const char *path = getenv("FAKE_CORE");
    char *answer = NULL;
    uint32_t size = (uint32_t)strlen(argument), length;
    int fd = socket(AF_UNIX, SOCK_STREAM, 0);
    if (!path || fd < 0) return NULL;
    busy++;
    snprintf(address.sun_path, sizeof address.sun_path, "%s", path);
    if (connect(fd, (struct sockaddr *)&address, sizeof address) == 0 && send_part(fd, &what, 1) == 0 &&
        send_part(fd, &size, sizeof size) == 0 && send_part(fd, argument, size) == 0 &&
        receive_part(fd, &length, sizeof length) == 0) {
        answer = malloc((size_t)length + 1);
        if (answer && receive_part(fd, answer, length) == 0) {
            answer[length] = 0;
            allocated++;
        } else {
            answer = NULL;
        }
    }
    close(fd);
    busy--;
    return answer;
}

void hs_init_with_rtsopts(int *argc, char ***argv) {
    (void)argc;
    (void)argv;
    started++;
}

char *chat_migrate_init(const char *path, const char *key, const char *confirm, void **controller) {
    char arguments[4096];
    static int store;
    snprintf(arguments, sizeof arguments, "%s\n%s\n%s", path, key, confirm);
    char *answer = ask('M', arguments);
    if (answer && strstr(answer, "\"ok\"")) *controller = &store;
    return answer;
}

char *chat_send_cmd(void *controller, const char *command) {
    (void)controller;
    return ask('C', command);
}

char *chat_recv_msg_wait(void *controller, int microseconds) {
    char wait[32];
    (void)controller;
    snprintf(wait, sizeof wait, "%d", microseconds);
    return ask('R', wait);
}

char *chat_close_store(void *controller) {
    (void)controller;
    return ask('X', "");
}

char *chat_write_file(void *controller, const char *path, const char *data, int size) {
    (void)controller, (void)path, (void)data, (void)size;
    return NULL;
}

uint8_t *chat_read_file(const char *path, const char *key, const char *nonce) {
    (void)path, (void)key, (void)nonce;
    return NULL;
}

char *chat_encrypt_file(void *controller, const char *from, const char *to) {
    (void)controller, (void)from, (void)to;
    return NULL;
}

char *chat_decrypt_file(const char *path, const char *key, const char *nonce, const char *to) {
    (void)path, (void)key, (void)nonce, (void)to;
    return NULL;
}
