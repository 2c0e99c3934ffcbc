/* How long a cache line takes from one core to another and back, in microseconds: the median of
 * some thousand trips per pair of cores, for each pair of the cores that this process may use (the
 * first 4 of them). Prints a line for each: CORE CORE MICROSECONDS */
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { kBatches = 201, kTrips = 200 };

static _Alignas(128) atomic_int ball;
static _Alignas(128) int partner;

static void Pin(int core) {
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(core, &set);
  sched_setaffinity(0, sizeof(set), &set);
}

static void* Return(void* unused) {
  Pin(partner);
  for (int i = 0; i < kBatches * kTrips; ++i) {
    while (atomic_load_explicit(&ball, memory_order_acquire) != 2 * i + 1) {
    }
    atomic_store_explicit(&ball, 2 * i + 2, memory_order_release);
  }
  return NULL;
}

static double Now(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (double)now.tv_sec * 1e6 + (double)now.tv_nsec / 1e3;
}

static int Compare(const void* a, const void* b) {
  const double x = *(const double*)a, y = *(const double*)b;
  return (x > y) - (x < y);
}

static double RoundTrip(int from, int to) {
  static double times[kBatches];
  pthread_t thread;
  partner = to;
  atomic_store(&ball, 0);
  Pin(from);
  if (pthread_create(&thread, NULL, Return, NULL) != 0) exit(1);
  for (int i = 0; i < kBatches; ++i) {
    const double start = Now();
    for (int k = i * kTrips; k < (i + 1) * kTrips; ++k) {
      atomic_store_explicit(&ball, 2 * k + 1, memory_order_release);
      while (atomic_load_explicit(&ball, memory_order_acquire) != 2 * k + 2) {
      }
    }
    times[i] = (Now() - start) / kTrips;
  }
  pthread_join(thread, NULL);
  qsort(times, kBatches, sizeof(double), Compare);
  return times[kBatches / 2];
}

int main(void) {
  cpu_set_t allowed;
  int cores[4], count = 0;
  sched_getaffinity(0, sizeof(allowed), &allowed);
  for (int core = 0; core < CPU_SETSIZE && count < 4; ++core) {
    if (CPU_ISSET(core, &allowed)) cores[count++] = core;
  }
  for (int i = 0; i < count; ++i) {
    for (int j = i + 1; j < count; ++j) {
      printf("%d %d %.3f\n", cores[i], cores[j], RoundTrip(cores[i], cores[j]));
    }
  }
  return 0;
}
