/* A library for LD_PRELOAD: every TCP connection sends at most PACE_BYTES bytes a second, as in a
 * network that caps single connections. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/socket.h>

static int Paced(int fd) {
  const char* bytes = getenv("PACE_BYTES");
  if (fd >= 0 && bytes != NULL) {
    const uint64_t pace = strtoull(bytes, NULL, 10);
    setsockopt(fd, SOL_SOCKET, SO_MAX_PACING_RATE, &pace,
               sizeof(pace)); /* without effect on other sockets */
  }
  return fd;
}

int socket(int domain, int type, int protocol) {
  int (*real)(int, int, int) = (int (*)(int, int, int))dlsym(RTLD_NEXT, "socket");
  return Paced(real(domain, type, protocol));
}

int accept4(int fd, struct sockaddr* address, socklen_t* length, int flags) {
  int (*real)(int, struct sockaddr*, socklen_t*, int) =
      (int (*)(int, struct sockaddr*, socklen_t*, int))dlsym(RTLD_NEXT, "accept4");
  return Paced(real(fd, address, length, flags));
}
