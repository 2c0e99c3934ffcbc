// libhvd_rendezvous.so, the library that programs link against. It only forwards calls, and depends
// on no other library: hvd_rendezvous_start loads the implementation, libhvd.so, with dlopen, from
// the folder of this library or its subfolder horovod/. That keeps the implementation's gRPC and
// Protobuf out of the program's global symbol scope, so they can't conflict with other versions in
// the program.
#include <dlfcn.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "horovod/rendezvous.h"

namespace {

constexpr char kCore[] = "libhvd.so";

thread_local char load_error[1024] = "";
void* core = nullptr;  // set once; see Load

// RTLD_DEEPBIND makes the core resolve symbols in its own libraries before the program's. It is not
// used if the program replaces malloc (jemalloc, a sanitizer): the core would use another malloc
// than the program, and memory would be freed by the wrong one.
int Mode() {
  const int mode = RTLD_NOW | RTLD_LOCAL;
  void* const libc = dlopen("libc.so.6", RTLD_LAZY | RTLD_NOLOAD);
  const bool usual = libc != nullptr && dlsym(libc, "malloc") == dlsym(RTLD_DEFAULT, "malloc");
  if (libc != nullptr) dlclose(libc);
  return usual ? mode | RTLD_DEEPBIND : mode;
}

void* LoadFrom(const char* folder) {
  Dl_info self;
  if (dladdr(reinterpret_cast<void*>(&hvd_rendezvous_start), &self) == 0) return nullptr;
  const char* const slash = strrchr(self.dli_fname, '/');
  const int length = slash == nullptr ? 0 : static_cast<int>(slash - self.dli_fname) + 1;
  char path[4096];
  snprintf(path, sizeof(path), "%.*s%s%s", length, self.dli_fname, folder, kCore);
  return dlopen(path, Mode());
}

// Loads the core. Returns null, with the reason in load_error, if that fails. Concurrent calls are
// harmless: dlopen returns the same handle for the same file.
void* Load() {
  void* found = __atomic_load_n(&core, __ATOMIC_ACQUIRE);
  if (found != nullptr) return found;
  found = LoadFrom("horovod/");
  char first[512] = "";
  if (found == nullptr) {
    snprintf(first, sizeof(first), "%s", dlerror());
    found = LoadFrom("");
  }
  if (found == nullptr) {
    snprintf(load_error, sizeof(load_error), "libhvd_rendezvous.so can't load %s: %s; %s", kCore,
             first, dlerror());
    return nullptr;
  }
  __atomic_store_n(&core, found, __ATOMIC_RELEASE);
  return found;
}

// Returns the core's function of this name, or `fallback` if the core can't be loaded.
template <typename Function>
Function* Core(const char* name, Function* fallback) {
  void* const loaded = Load();
  void* const found = loaded == nullptr ? nullptr : dlsym(loaded, name);
  if (found != nullptr) {
    load_error[0] = 0;
    return reinterpret_cast<Function*>(found);
  }
  if (loaded != nullptr) {
    snprintf(load_error, sizeof(load_error),
             "%s beside libhvd_rendezvous.so has no %s: they come "
             "from different versions of Horovod",
             kCore, name);
  }
  return fallback;
}

}  // namespace

// `absent` is the result if the core can't be loaded. NOLINTBEGIN(bugprone-macro-parentheses):
// lists of parameters and of arguments have theirs
#define FORWARD(result, name, parameters, arguments, absent)                                     \
  result name parameters {                                                                       \
    return Core<result parameters>(#name, [] parameters -> result { return absent; }) arguments; \
  }
#define FORWARD_CODE(name, parameters, arguments) \
  FORWARD(int32_t, name, parameters, arguments, HVD_RENDEZVOUS_UNAVAILABLE)
// NOLINTEND(bugprone-macro-parentheses)

const char* hvd_rendezvous_last_error() {
  if (load_error[0] != 0) return load_error;
  return Core<const char*()>("hvd_rendezvous_last_error", [] { return ""; })();
}

FORWARD(int32_t, hvd_rendezvous_abi_version, (), (), 0)
FORWARD(const char*, hvd_rendezvous_version, (), (), "")
FORWARD(void, hvd_rendezvous_free, (char* text), (text), void())
FORWARD(void, hvd_rendezvous_job_options_init, (hvd_rendezvous_job_options * options, size_t size),
        (options, size), void())
FORWARD(const char*, hvd_rendezvous_address, (const hvd_rendezvous_server* server, int32_t n),
        (server, n), nullptr)
FORWARD(const char*, hvd_rendezvous_job_id, (const hvd_rendezvous_job* job), (job), "")
FORWARD_CODE(hvd_rendezvous_start,
             (int32_t abi_version, const char* const* listen, int32_t count,
              hvd_rendezvous_server** server),
             (abi_version, listen, count, server))
FORWARD_CODE(hvd_rendezvous_start_with_state,
             (int32_t abi_version, const char* const* listen, int32_t count, const char* state_dir,
              hvd_rendezvous_server** server),
             (abi_version, listen, count, state_dir, server))
FORWARD_CODE(hvd_rendezvous_kept_jobs,
             (hvd_rendezvous_server * server, void* context,
              void (*take)(void* context, const hvd_rendezvous_kept_job* job)),
             (server, context, take))
FORWARD_CODE(hvd_rendezvous_forget_job, (hvd_rendezvous_server * server, const char* id),
             (server, id))
FORWARD_CODE(hvd_rendezvous_earlier_workers,
             (hvd_rendezvous_job * job, void* context,
              void (*take)(void* context, const hvd_rendezvous_earlier_worker* worker)),
             (job, context, take))
FORWARD_CODE(hvd_rendezvous_start_again, (hvd_rendezvous_job * job, uint64_t worker), (job, worker))
FORWARD_CODE(hvd_rendezvous_stop, (hvd_rendezvous_server * server), (server))
FORWARD_CODE(hvd_rendezvous_metrics, (hvd_rendezvous_server * server, char** text), (server, text))
FORWARD_CODE(hvd_rendezvous_add_job,
             (hvd_rendezvous_server * server, const hvd_rendezvous_job_options* options,
              hvd_rendezvous_job** job),
             (server, options, job))
FORWARD_CODE(hvd_rendezvous_remove_job, (hvd_rendezvous_job * job), (job))
FORWARD_CODE(hvd_rendezvous_credentials, (hvd_rendezvous_job * job, char** text), (job, text))
FORWARD_CODE(hvd_rendezvous_offer_slots,
             (hvd_rendezvous_job * job, const hvd_rendezvous_host* hosts, int32_t count),
             (job, hosts, count))
FORWARD_CODE(hvd_rendezvous_set_limits, (hvd_rendezvous_job * job, int32_t min_np, int32_t max_np),
             (job, min_np, max_np))
FORWARD_CODE(hvd_rendezvous_report_started,
             (hvd_rendezvous_job * job, uint64_t worker, int64_t pid), (job, worker, pid))
FORWARD_CODE(hvd_rendezvous_report_exit,
             (hvd_rendezvous_job * job, const hvd_rendezvous_exit* exit), (job, exit))
FORWARD_CODE(hvd_rendezvous_drain,
             (hvd_rendezvous_job * job, const char* host, double grace, const char* reason),
             (job, host, grace, reason))
FORWARD_CODE(hvd_rendezvous_request_stop,
             (hvd_rendezvous_job * job, const char* reason, int32_t exit_code, double grace),
             (job, reason, exit_code, grace))
FORWARD_CODE(hvd_rendezvous_describe, (hvd_rendezvous_job * job, char** json), (job, json))
FORWARD_CODE(hvd_rendezvous_job_metrics, (hvd_rendezvous_job * job, char** text), (job, text))
