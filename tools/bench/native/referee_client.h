/* The client side of tools/bench/referee.py, in C for the benchmark programs of all libraries. The
 * referee sends a line with the next case to time; the contestant answers with a line with the
 * time.
 *
 *   contestant: hello NAME RANK         once
 *   referee:    OPERATION TYPE BYTES CALLS BLOCK
 *   contestant: SECONDS (of one call), or "no REASON"
 *
 * The contestant exits at the end of the stream. */
#ifndef TOOLS_BENCH_NATIVE_REFEREE_CLIENT_H_
#define TOOLS_BENCH_NATIVE_REFEREE_CLIENT_H_

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

struct Case {
  char operation[32];
  char type[32];
  size_t bytes; /* of a rank's larger buffer */
  int calls;
  int block; /* calls between two readings of the clock */
};

/* A connected socket, or -1. */
static int ConnectToReferee(const char* path, const char* name, int rank) {
  struct sockaddr_un address;
  memset(&address, 0, sizeof(address));
  address.sun_family = AF_UNIX;
  snprintf(address.sun_path, sizeof(address.sun_path), "%s", path);
  const int fd = socket(AF_UNIX, SOCK_STREAM, 0);
  if (fd < 0 || connect(fd, (struct sockaddr*)&address, sizeof(address)) != 0) {
    perror(path);
    return -1;
  }
  dprintf(fd, "hello %s %d\n", name, rank);
  return fd;
}

/* Reads the next case. Returns 0 at the end of the stream. */
static int NextCase(int fd, struct Case* next) {
  char line[128];
  size_t length = 0;
  while (length + 1 < sizeof(line) && read(fd, line + length, 1) == 1 && line[length] != '\n') {
    ++length;
  }
  line[length] = 0;
  return sscanf(line, "%31s %31s %zu %d %d", next->operation, next->type, &next->bytes,
                &next->calls, &next->block) == 5;
}

static int CompareSeconds(const void* a, const void* b) {
  const double x = *(const double*)a, y = *(const double*)b;
  return (x > y) - (x < y);
}

/* Makes the calls and returns the seconds of one: the median over the blocks. Ends the program if a
 * call fails, i.e. returns a value other than 0. */
static double TimeCalls(const struct Case* what, double (*now)(void), int (*call)(void*),
                        void* context) {
  const int blocks = (what->calls + what->block - 1) / what->block;
  double* seconds = (double*)malloc(sizeof(double) * (size_t)blocks);
  for (int i = 0; i < blocks; ++i) {
    const double start = now();
    for (int k = 0; k < what->block; ++k) {
      if (call(context) != 0) exit(1);
    }
    seconds[i] = (now() - start) / what->block;
  }
  qsort(seconds, (size_t)blocks, sizeof(double), CompareSeconds);
  const double median = seconds[blocks / 2];
  free(seconds);
  return median;
}

#endif /* TOOLS_BENCH_NATIVE_REFEREE_CLIENT_H_ */
