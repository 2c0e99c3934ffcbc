#include "base/os/process_limits.h"

#include <dirent.h>
#include <pthread.h>
#include <sys/resource.h>

#include <algorithm>
#include <cstring>
#include <fstream>
#include <new>
#include <optional>
#include <system_error>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/notification.h"

namespace hvd::os {
namespace {

constexpr int kThreads = 16;  // about as many as a daemon has
constexpr char kLimitsOfThreads[] = "ulimit -u, ulimit -v and the cgroup's pids.max may say why";

constexpr size_t kLeastFiles = 64;

// Twice what an agent and a Python without packages need.
constexpr rlim_t kLeastStack = 256 << 10;

// The allocator reserves up to 128 MiB for a thread.
constexpr rlim_t kLeastAddressSpace = 1 << 30;

// With a limit of 0 the kernel still pipes core dumps to a handler program (core(5)); a limit of 1
// disables that too.
constexpr rlim_t kNoCoreFile = 1;

constexpr int kLargestOomScore = 1000, kNeverTaken = -1000;

// A soft limit, and its original value if it was changed. Children get the original value
// (RestoreLimits).
struct Limit {
  __rlimit_resource resource;
  std::optional<rlim_t> before;

  void Set(rlim_t wanted) {
    rlimit limit = {};
    if (getrlimit(resource, &limit) != 0) return;
    const rlim_t now = limit.rlim_cur;
    limit.rlim_cur = std::min(wanted, limit.rlim_max);
    if (limit.rlim_cur != now && setrlimit(resource, &limit) == 0 && !before.has_value()) {
      before = now;
    }
  }
};

Limit files = {RLIMIT_NOFILE, std::nullopt};
Limit cores = {RLIMIT_CORE, std::nullopt};

size_t CountOpenFiles() {
  size_t open = 0;
  DIR* const folder = opendir("/proc/self/fd");
  if (folder == nullptr) return open;
  while (readdir(folder) != nullptr) ++open;  // "." and ".." as well, which does no harm
  closedir(folder);
  return open;
}

void* AwaitEnd(void* end) {
  static_cast<absl::Notification*>(end)->WaitForNotification();
  return nullptr;
}

}  // namespace

void AllowManyFiles() { files.Set(RLIM_INFINITY); }

size_t AllowMoreFiles(size_t more) {
  rlimit limit = {};
  const size_t open = CountOpenFiles();
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return 0;
  if (limit.rlim_cur < open + more) {
    rlimit raised = limit;
    raised.rlim_cur = std::min<rlim_t>(open + more, limit.rlim_max);
    if (setrlimit(RLIMIT_NOFILE, &raised) == 0) limit = raised;
  }
  return limit.rlim_cur > open ? limit.rlim_cur - open : 0;
}

size_t OpenFilesLimit() {
  rlimit limit = {};
  return getrlimit(RLIMIT_NOFILE, &limit) == 0 ? limit.rlim_cur : 0;
}

void ForbidCoreFiles() { cores.Set(kNoCoreFile); }

void RestoreLimits() {
  for (Limit* const limit : {&files, &cores}) {
    if (limit->before.has_value()) limit->Set(*limit->before);
  }
}

std::string RaisedOomScore(int more) {
  std::ifstream file("/proc/self/oom_score_adj");
  int own = kNeverTaken;
  if (!(file >> own) || own == kNeverTaken) return "";
  return std::to_string(std::min(own + more, kLargestOomScore));
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
                   std::strerror(error), "), and ", kThreads, " are needed; ", kLimitsOfThreads));
}

absl::Status CheckFiles() {
  const size_t limit = OpenFilesLimit();
  if (limit >= kLeastFiles) return absl::OkStatus();
  return absl::ResourceExhaustedError(absl::StrCat("only ", limit,
                                                   " files may be open here (ulimit -n); at least ",
                                                   kLeastFiles, " are needed, and 1024 are usual"));
}

absl::Status CheckStack() {
  rlimit limit = {};
  // RLIM_INFINITY is the largest number.
  if (getrlimit(RLIMIT_STACK, &limit) != 0 || limit.rlim_cur >= kLeastStack)
    return absl::OkStatus();
  return absl::ResourceExhaustedError(absl::StrCat(
      "the stack may have only ", limit.rlim_cur >> 10, " KiB here (ulimit -s); at least ",
      kLeastStack >> 10, " are needed, and 8192 are usual"));
}

absl::Status CheckAddressSpace() {
  rlimit limit = {};
  if (getrlimit(RLIMIT_AS, &limit) != 0 || limit.rlim_cur >= kLeastAddressSpace)
    return absl::OkStatus();
  return absl::ResourceExhaustedError(
      absl::StrCat("only ", limit.rlim_cur >> 20,
                   " MiB of address space may be used here (ulimit -v); at least ",
                   kLeastAddressSpace >> 20, " are needed, and no limit is usual"));
}

absl::Status StatusOf(const std::exception& error) {
  if (dynamic_cast<const std::bad_alloc*>(&error) != nullptr) {
    return absl::ResourceExhaustedError("there is no memory left");
  }
  const auto* const system = dynamic_cast<const std::system_error*>(&error);
  if (system == nullptr || system->code() != std::errc::resource_unavailable_try_again) {
    return absl::InternalError(error.what());
  }
  return absl::ResourceExhaustedError(
      absl::StrCat("no more threads can be started here (", error.what(), "); ", kLimitsOfThreads));
}

}  // namespace hvd::os
