#include "base/process_limits.h"

#include <pthread.h>
#include <sys/resource.h>

#include <cstring>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/notification.h"

namespace hvd {
namespace {

constexpr int kThreads = 16;  // about as many as a daemon has

rlim_t limit_before = 0;  // 0: unchanged

void* AwaitEnd(void* end) {
  static_cast<absl::Notification*>(end)->WaitForNotification();
  return nullptr;
}

}  // namespace

void AllowManyFiles() {
  rlimit limit = {};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur == limit.rlim_max) return;
  const rlim_t before = limit.rlim_cur;
  limit.rlim_cur = limit.rlim_max;
  if (setrlimit(RLIMIT_NOFILE, &limit) == 0) limit_before = before;
}

void RestoreFileLimit() {
  rlimit limit = {};
  if (limit_before == 0 || getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  limit.rlim_cur = limit_before;
  setrlimit(RLIMIT_NOFILE, &limit);
}

absl::Status CheckThreads() {
  absl::Notification end;
  std::vector<pthread_t> threads;
  int error = 0;
  while (error == 0 && threads.size() < kThreads) {
    pthread_t thread;
    error = pthread_create(&thread, nullptr, AwaitEnd, &end);
    if (error == 0) threads.push_back(thread);
  }
  end.Notify();
  for (const pthread_t thread : threads) pthread_join(thread, nullptr);
  if (error == 0) return absl::OkStatus();
  return absl::ResourceExhaustedError(
      absl::StrCat("no more than ", threads.size(), " threads can be started here (",
                   std::strerror(error), "), and ", kThreads,
                   " are needed; ulimit -u, ulimit -v and the cgroup's pids.max may say why"));
}

}  // namespace hvd
