// The C++17 API of the rendezvous server: a header-only wrapper of horovod/rendezvous.h. It needs
// the standard library and libhvd_rendezvous.so only.
//
//   horovod::rendezvous::Server server({"127.0.0.1:0"});
//   horovod::rendezvous::JobOptions options;
//   options.np = 2;
//   options.start_worker = [](const Worker& worker) { ... a process with its environment ... };
//   options.stop_worker = [](uint64_t worker, double grace) { ... SIGTERM, later SIGKILL ... };
//   horovod::rendezvous::Job job = server.add_job(options);
//   job.offer_slots({{"localhost", 4}});
//   ... job.report_exit(exit) for each process that has ended ...
//
// Functions report errors by throwing Error: constructors can fail, and a caller can rarely
// continue after such an error. No exception crosses the C API; this header throws them. See
// horovod/rendezvous.h for everything that is not documented here.
//
// All functions are thread-safe, except for moving, assigning and destroying an object. Callbacks
// come one at a time from the job's thread. They must not block and must not destroy a Job or a
// Server. An exception that leaves a callback terminates the program, as in a std::thread.
#ifndef HOROVOD_RENDEZVOUS_HPP_
#define HOROVOD_RENDEZVOUS_HPP_

#include <horovod/rendezvous.h>

#include <cstdint>
#include <cstdio>
#include <exception>
#include <functional>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace horovod {
namespace rendezvous {

// An error of the API. what() is a one-line message, code() is an HVD_RENDEZVOUS_ constant.
class Error : public std::runtime_error {
 public:
  Error(int32_t code, const char* text) : std::runtime_error(text), code_(code) {}
  int32_t code() const noexcept { return code_; }

 private:
  int32_t code_;
};

// A worker process that the program must start.
struct Worker {
  uint64_t worker = 0;                   // identifies it in later calls
  std::string host;                      // as in the offer
  std::vector<std::string> environment;  // "NAME=value": variables to add to its environment
};

// The result of a job; see hvd_rendezvous_result.
struct Result {
  bool success = false;
  int exit_code = 0;
  std::string summary;
  int rank = -1;
  std::string host;
  std::string exit_meaning;
  std::string exception;
};

struct Host {
  std::string host;
  int slots = 1;
  std::string machine = {};  // empty: the host's name
};

// The end of a worker's process; see hvd_rendezvous_exit.
struct Exit {
  uint64_t worker = 0;
  int exit_code = 0;
  int signal = 0;
  bool core_dumped = false;
  bool out_of_memory = false;
  std::string start_error = {};  // not empty: why the process could not be started
  std::string last_output = {};
  std::string unknown_end = {};  // not empty: the exit status is not known; see hvd_rendezvous_exit
};

// A worker process that was started before a restart of the scheduler; see
// hvd_rendezvous_earlier_workers.
struct EarlierWorker {
  uint64_t worker = 0;
  std::string host;
  int64_t pid = 0;
};

// A job in the state directory that was not added to the server; see hvd_rendezvous_kept_job.
struct KeptJob {
  std::string id;  // empty if it can't be read
  int np = 0;
  int min_np = 0;
  int max_np = 0;
  bool starts_workers = false;
  bool has_ended = false;
  Result result = {};        // if it has ended
  std::string problem = {};  // not empty: why the job can't be read
};

// The options of a job; see hvd_rendezvous_job_options. The defaults of `tuning` are the library's.
struct JobOptions {
  std::string id;  // empty: a random one
  int np = 1;
  int min_np = 0;
  int max_np = 0;
  // All other options. The id, the sizes and the callbacks of this struct override its members.
  hvd_rendezvous_job_options tuning = [] {
    hvd_rendezvous_job_options options;
    hvd_rendezvous_job_options_init(&options, sizeof(options));
    return options;
  }();

  std::function<void(const Worker&)> start_worker;
  std::function<void(uint64_t worker, double grace)> stop_worker;
  std::function<void(const std::string& host)> host_free;
  std::function<void(const Result&)> finished;
  std::function<void(const std::string& json)> notice;
  std::function<void(const std::string& why)> journal_failed;
};

namespace internal {

inline void Check(int32_t code) {
  if (code != HVD_RENDEZVOUS_OK) throw Error(code, hvd_rendezvous_last_error());
}

// For destructors, where a failure is a bug in the program.
inline void CheckEnd(int32_t code) noexcept {
  if (code == HVD_RENDEZVOUS_OK) return;
  std::fprintf(stderr, "horovod::rendezvous: %s\n", hvd_rendezvous_last_error());
  std::terminate();
}

// Calls a function of the C API that returns a string, and takes ownership of the string.
template <typename Function, typename Handle>
std::string Text(Function function, Handle* handle) {
  char* made = nullptr;
  Check(function(handle, &made));
  const std::unique_ptr<char, void (*)(char*)> owner(made, hvd_rendezvous_free);
  return made;
}

inline JobOptions& OptionsOf(void* context) { return *static_cast<JobOptions*>(context); }

inline void StartWorker(void* context, const hvd_rendezvous_worker* given) noexcept {
  Worker worker{given->worker, given->host, {}};
  for (const char* const* v = given->environment; *v != nullptr; ++v) {
    worker.environment.emplace_back(*v);
  }
  OptionsOf(context).start_worker(worker);
}
inline void StopWorker(void* context, uint64_t worker, double grace) noexcept {
  OptionsOf(context).stop_worker(worker, grace);
}
inline void HostFree(void* context, const char* host) noexcept {
  OptionsOf(context).host_free(host);
}
inline Result ToResult(const hvd_rendezvous_result& given) {
  return {given.success != 0, given.exit_code,    given.summary,  given.rank,
          given.host,         given.exit_meaning, given.exception};
}
inline void Finished(void* context, const hvd_rendezvous_result* given) noexcept {
  OptionsOf(context).finished(ToResult(*given));
}
inline void JournalFailed(void* context, const char* why) noexcept {
  OptionsOf(context).journal_failed(why);
}
inline void Notice(void* context, const char* json) noexcept { OptionsOf(context).notice(json); }

inline hvd_rendezvous_job_options ToC(JobOptions& options) {
  hvd_rendezvous_job_options made = options.tuning;
  made.id = options.id.empty() ? nullptr : options.id.c_str();
  made.np = options.np;
  made.min_np = options.min_np;
  made.max_np = options.max_np;
  made.context = &options;
  made.start_worker = options.start_worker ? StartWorker : nullptr;
  made.stop_worker = options.stop_worker ? StopWorker : nullptr;
  made.host_free = options.host_free ? HostFree : nullptr;
  made.finished = options.finished ? Finished : nullptr;
  made.notice = options.notice ? Notice : nullptr;
  made.journal_failed = options.journal_failed ? JournalFailed : nullptr;
  return made;
}

}  // namespace internal

// A job on a server. The destructor removes it, as hvd_rendezvous_remove_job does: no callback
// comes after that. The program must stop the processes that it started, unless a state directory
// keeps the job.
class Job {
 public:
  Job(Job&&) noexcept = default;
  Job& operator=(Job&& other) noexcept {
    std::swap(server_, other.server_);
    std::swap(options_, other.options_);
    std::swap(job_, other.job_);
    return *this;
  }
  ~Job() = default;

  std::string id() const { return hvd_rendezvous_job_id(job_.get()); }
  // The text of the file for `horovod-agent --join ADDRESS --token-file FILE`; secret.
  std::string credentials() const { return internal::Text(hvd_rendezvous_credentials, job_.get()); }

  void offer_slots(const std::vector<Host>& hosts) {
    std::vector<hvd_rendezvous_host> made;
    for (const Host& host : hosts) {
      made.push_back({host.host.c_str(), host.slots, host.machine.c_str()});
    }
    internal::Check(
        hvd_rendezvous_offer_slots(job_.get(), made.data(), static_cast<int32_t>(made.size())));
  }

  void set_limits(int min_np, int max_np) {
    internal::Check(hvd_rendezvous_set_limits(job_.get(), min_np, max_np));
  }

  std::vector<EarlierWorker> earlier_workers() {
    std::vector<EarlierWorker> found;
    internal::Check(hvd_rendezvous_earlier_workers(
        job_.get(), &found, [](void* context, const hvd_rendezvous_earlier_worker* given) {
          static_cast<std::vector<EarlierWorker>*>(context)->push_back(
              {given->worker, given->host, given->pid});
        }));
    return found;
  }
  void start_again(uint64_t worker) {
    internal::Check(hvd_rendezvous_start_again(job_.get(), worker));
  }

  void report_started(uint64_t worker, int64_t pid) {
    internal::Check(hvd_rendezvous_report_started(job_.get(), worker, pid));
  }
  void report_exit(const Exit& exit) {
    hvd_rendezvous_exit made = {};
    made.size = sizeof(made);
    made.worker = exit.worker;
    made.exit_code = exit.exit_code;
    made.signal = exit.signal;
    made.core_dumped = exit.core_dumped;
    made.out_of_memory = exit.out_of_memory;
    made.start_error = exit.start_error.empty() ? nullptr : exit.start_error.c_str();
    made.last_output = exit.last_output.c_str();
    made.unknown_end = exit.unknown_end.empty() ? nullptr : exit.unknown_end.c_str();
    internal::Check(hvd_rendezvous_report_exit(job_.get(), &made));
  }

  void drain(const std::string& host, double grace, const std::string& reason) {
    internal::Check(hvd_rendezvous_drain(job_.get(), host.c_str(), grace, reason.c_str()));
  }
  void request_stop(const std::string& reason, int exit_code, double grace) {
    internal::Check(hvd_rendezvous_request_stop(job_.get(), reason.c_str(), exit_code, grace));
  }

  std::string describe() const { return internal::Text(hvd_rendezvous_describe, job_.get()); }
  std::string metrics() const { return internal::Text(hvd_rendezvous_job_metrics, job_.get()); }

 private:
  friend class Server;
  struct Remove {
    void operator()(hvd_rendezvous_job* job) const noexcept {
      internal::CheckEnd(hvd_rendezvous_remove_job(job));
    }
  };

  Job(std::shared_ptr<hvd_rendezvous_server> server, JobOptions options)
      : server_(std::move(server)), options_(std::make_unique<JobOptions>(std::move(options))) {
    const hvd_rendezvous_job_options made = internal::ToC(*options_);
    hvd_rendezvous_job* job = nullptr;
    internal::Check(hvd_rendezvous_add_job(server_.get(), &made, &job));
    job_.reset(job);
  }

  // Destroyed from the last to the first: callbacks use the options.
  std::shared_ptr<hvd_rendezvous_server> server_;
  std::unique_ptr<JobOptions> options_;
  std::unique_ptr<hvd_rendezvous_job, Remove> job_;
};

// A server. It keeps running until its jobs are destroyed too.
class Server {
 public:
  // `listen` has numeric "address:port"; port 0 selects a free port. `state_dir` keeps the jobs
  // beyond this process; empty: none. See hvd_rendezvous_start_with_state.
  explicit Server(const std::vector<std::string>& listen, const std::string& state_dir = {}) {
    std::vector<const char*> addresses;
    for (const std::string& address : listen) addresses.push_back(address.c_str());
    const auto count = static_cast<int32_t>(addresses.size());
    hvd_rendezvous_server* server = nullptr;
    internal::Check(
        state_dir.empty()
            ? hvd_rendezvous_start(HVD_RENDEZVOUS_ABI_VERSION, addresses.data(), count, &server)
            : hvd_rendezvous_start_with_state(HVD_RENDEZVOUS_ABI_VERSION, addresses.data(), count,
                                              state_dir.c_str(), &server));
    server_ = std::shared_ptr<hvd_rendezvous_server>(
        server, [](hvd_rendezvous_server* s) { internal::CheckEnd(hvd_rendezvous_stop(s)); });
  }

  // The addresses listened on, with their real ports.
  std::vector<std::string> addresses() const {
    std::vector<std::string> made;
    for (int32_t n = 0;; ++n) {
      const char* const address = hvd_rendezvous_address(server_.get(), n);
      if (address == nullptr) return made;
      made.emplace_back(address);
    }
  }

  Job add_job(JobOptions options) { return Job(server_, std::move(options)); }

  std::vector<KeptJob> kept_jobs() {
    std::vector<KeptJob> found;
    internal::Check(hvd_rendezvous_kept_jobs(
        server_.get(), &found, [](void* context, const hvd_rendezvous_kept_job* given) {
          KeptJob kept{given->id,
                       given->np,
                       given->min_np,
                       given->max_np,
                       given->starts_workers != 0,
                       given->ended != nullptr};
          if (given->ended != nullptr) kept.result = internal::ToResult(*given->ended);
          if (given->problem != nullptr) kept.problem = given->problem;
          static_cast<std::vector<KeptJob>*>(context)->push_back(std::move(kept));
        }));
    return found;
  }
  void forget_job(const std::string& id) {
    internal::Check(hvd_rendezvous_forget_job(server_.get(), id.c_str()));
  }

  // The metrics of all jobs in Prometheus' text format.
  std::string metrics() const { return internal::Text(hvd_rendezvous_metrics, server_.get()); }

 private:
  std::shared_ptr<hvd_rendezvous_server> server_;
};

}  // namespace rendezvous
}  // namespace horovod

#endif  // HOROVOD_RENDEZVOUS_HPP_
