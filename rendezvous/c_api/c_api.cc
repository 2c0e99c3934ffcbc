// The implementation of horovod/rendezvous.h.
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/clock.h"
#include "base/mutex_checks.h"
#include "base/signal_free_thread.h"
#include "base/status_macros.h"
#include "base/text/names.h"
#include "base/text/utf8.h"
#include "base/version.h"
#include "horovod/rendezvous.h"
#include "rendezvous/c_api/guarded.h"
#include "rendezvous/c_api/handles.h"
#include "rendezvous/c_api/job_options.h"
#include "rendezvous/reporting/event_log.h"
#include "rendezvous/reporting/job_json.h"
#include "rendezvous/security/protobuf_log.h"
#include "rendezvous/security/token_file.h"
#include "rendezvous/server/server.h"

namespace {

constexpr int32_t kMostSlots = 1 << 16;  // of a host; the same limit as for agents
// The size of the structure in the first version of the ABI.
constexpr size_t kFirstExitSize = offsetof(hvd_rendezvous_exit, last_output) + sizeof(void*);

using hvd::WorkerId;
using hvd::rendezvous::c_api::Guarded;
using hvd::rendezvous::c_api::InCallback;
using hvd::rendezvous::c_api::OrEmpty;
using hvd::rendezvous::c_api::ToDuration;
using hvd::rendezvous::membership::HostSlots;
using hvd::rendezvous::membership::Notice;
using hvd::rendezvous::membership::Verdict;
using hvd::rendezvous::membership::WorkerExited;
using hvd::rendezvous::server::RendezvousServer;
using hvd::rendezvous::server::ServedJob;
using hvd::rendezvous::server::ServedJobOptions;
using hvd::rendezvous::server::WorkerStart;

// Returns a copy that hvd_rendezvous_free frees: memory is allocated and freed in the same library.
absl::Status GiveText(const std::string& text, char** result) {
  *result = strdup(text.c_str());
  return *result != nullptr ? absl::OkStatus()
                            : absl::ResourceExhaustedError("there is no memory left");
}

absl::Status CheckAbi(int32_t version) {
  if (version == HVD_RENDEZVOUS_ABI_VERSION) return absl::OkStatus();
  return absl::UnimplementedError(absl::StrCat(
      "the program was built for version ", version, " of the ABI of libhvd_rendezvous.so, and ",
      "this library (of Horovod ", hvd::kVersion, ") has version ", HVD_RENDEZVOUS_ABI_VERSION,
      ": build the program with the header of this library"));
}

void CallStartWorker(const hvd_rendezvous_job_options& options, const WorkerStart& start) {
  std::vector<std::string> variables;
  for (const auto& [name, value] : start.environment) {
    variables.push_back(absl::StrCat(name, "=", value));
  }
  // In a second loop: the pointers would dangle if `variables` still grew.
  std::vector<const char*> environment;
  for (const std::string& variable : variables) environment.push_back(variable.c_str());
  environment.push_back(nullptr);
  const hvd_rendezvous_worker worker = {sizeof(worker), start.worker.value(), start.host.c_str(),
                                        environment.data()};
  const InCallback in_callback;
  options.start_worker(options.context, &worker);
}

void CallFinished(const hvd_rendezvous_job_options& options, const Verdict& verdict) {
  const hvd_rendezvous_result result = hvd::rendezvous::c_api::ToResult(verdict);
  const InCallback in_callback;
  options.finished(options.context, &result);
}

void CallNotice(const hvd_rendezvous_job_options& options, const Notice& notice) {
  // The format of the event log, so that programs need one parser for both.
  std::string line = hvd::rendezvous::reporting::EventLogLine(notice, hvd::WallNow());
  line.pop_back();  // the newline
  const InCallback in_callback;
  options.notice(options.context, line.c_str());
}

// Wraps the callbacks of a job. The options are copied: the caller's structure may be gone when a
// callback runs. InCallback marks the thread, so that functions that must not be called from a
// callback (they would wait for it) fail instead of blocking.
void SetCallbacks(const hvd_rendezvous_job_options& options, ServedJobOptions& made) {
  // A callback that is not given stays an empty function: whether start_worker is empty decides who
  // starts the processes.
  if (options.start_worker != nullptr) {
    made.start_worker = [options](const WorkerStart& start) { CallStartWorker(options, start); };
  }
  if (options.stop_worker != nullptr) {
    made.stop_worker = [options](WorkerId worker, absl::Duration grace) {
      const InCallback in_callback;
      options.stop_worker(options.context, worker.value(), absl::ToDoubleSeconds(grace));
    };
  }
  if (options.host_free != nullptr) {
    made.on_host_free = [options](const std::string& host) {
      const InCallback in_callback;
      options.host_free(options.context, host.c_str());
    };
  }
  if (options.finished != nullptr) {
    made.on_finished = [options](const Verdict& verdict) { CallFinished(options, verdict); };
  }
  if (options.notice != nullptr) {
    made.on_notice = [options](const Notice& notice) { CallNotice(options, notice); };
  }
  if (options.journal_failed != nullptr) {
    made.on_journal_error = [options](const absl::Status& why) {
      const InCallback in_callback;
      options.journal_failed(options.context, std::string(why.message()).c_str());
    };
  }
}

absl::StatusOr<ServedJobOptions> ToServedJobOptions(const hvd_rendezvous_job_options& given) {
  // First: members beyond the caller's `size` are not part of its structure.
  ASSIGN_OR_RETURN(hvd_rendezvous_job_options options,
                   hvd::rendezvous::c_api::WholeJobOptions(given));
  if ((options.start_worker == nullptr) != (options.stop_worker == nullptr)) {
    return absl::InvalidArgumentError("start_worker and stop_worker: set both, or neither");
  }
  ServedJobOptions made;
  made.job_id = OrEmpty(options.id);
  RETURN_IF_ERROR(hvd::text::CheckName("id", made.job_id));
  ASSIGN_OR_RETURN(made.spec, hvd::rendezvous::c_api::ToJobSpec(options));
  options.id = nullptr;  // owned by the caller; not valid later
  SetCallbacks(options, made);
  return made;
}

absl::StatusOr<std::vector<HostSlots>> ToHosts(const hvd_rendezvous_host* hosts, int32_t count) {
  // An empty offer drains all hosts, so it must be meant.
  if (count < 0) return absl::InvalidArgumentError(absl::StrCat("the number of hosts is ", count));
  std::vector<HostSlots> made;
  std::set<std::string> names;
  for (int32_t i = 0; i < count; ++i) {
    const std::string name = OrEmpty(hosts[i].host);
    if (name.empty()) return absl::InvalidArgumentError("a host without a name is offered");
    RETURN_IF_ERROR(hvd::text::CheckName("the name of a host", name));
    RETURN_IF_ERROR(hvd::text::CheckName("the machine of a host", OrEmpty(hosts[i].machine)));
    if (hosts[i].slots < 1 || hosts[i].slots > kMostSlots) {
      return absl::InvalidArgumentError(absl::StrCat("host ", name, " is offered with ",
                                                     hosts[i].slots, " slots; it may have 1 to ",
                                                     kMostSlots));
    }
    // Refused, not added up: an offer replaces the earlier one, and half of it would drain hosts.
    if (!names.insert(name).second) {
      return absl::InvalidArgumentError(absl::StrCat("host ", name, " is offered twice"));
    }
    made.push_back({name, hosts[i].slots, OrEmpty(hosts[i].machine)});
  }
  return made;
}

absl::Status Start(int32_t abi_version, const char* const* listen, int32_t count,
                   const char* state_dir, hvd_rendezvous_server** server) {
  // Before anything else: the structures that such a program passes later may have another layout.
  RETURN_IF_ERROR(CheckAbi(abi_version));
  hvd::rendezvous::server::RendezvousServerOptions options;
  for (int32_t i = 0; i < count; ++i) options.listen.push_back(OrEmpty(listen[i]));
  options.state_dir = state_dir;
  hvd::SwitchOffMutexChecks();
  hvd::rendezvous::security::SilenceProtobuf();
  // The threads that start here inherit the mask, so the program's signals are delivered to its own
  // threads.
  const hvd::SignalsBlocked blocked;
  auto made = std::make_unique<hvd_rendezvous_server>();
  ASSIGN_OR_RETURN(made->server, RendezvousServer::Start(options));
  *server = made.release();
  return absl::OkStatus();
}

// A program may have cut its output in the middle of a character, and the messages to workers can
// only hold valid text.
std::string TextOf(const char* text) { return hvd::text::ToUtf8(OrEmpty(text)); }

WorkerExited ToEvent(const hvd_rendezvous_exit& exit) {
  WorkerExited event;
  event.worker = WorkerId(exit.worker);
  event.exit_code = exit.exit_code;
  event.signal = exit.signal;
  event.core_dumped = exit.core_dumped != 0;
  event.out_of_memory = exit.out_of_memory != 0;
  event.start_error = TextOf(exit.start_error);
  event.unknown_end = TextOf(exit.unknown_end);
  event.stderr_tail = absl::StrSplit(TextOf(exit.last_output), '\n', absl::SkipEmpty());
  return event;
}

}  // namespace

int32_t hvd_rendezvous_abi_version() { return HVD_RENDEZVOUS_ABI_VERSION; }
const char* hvd_rendezvous_version() { return hvd::kVersion; }
const char* hvd_rendezvous_last_error() { return hvd::rendezvous::c_api::LastError(); }
void hvd_rendezvous_free(char* text) { std::free(text); }

int32_t hvd_rendezvous_start(int32_t abi_version, const char* const* listen, int32_t count,
                             hvd_rendezvous_server** server) {
  return Guarded([&] { return Start(abi_version, listen, count, "", server); });
}

int32_t hvd_rendezvous_start_with_state(int32_t abi_version, const char* const* listen,
                                        int32_t count, const char* state_dir,
                                        hvd_rendezvous_server** server) {
  return Guarded([&]() -> absl::Status {
    // Start would take it for a server without a state directory, which loses its jobs: the
    // caller's variable may be empty by mistake.
    if (OrEmpty(state_dir).empty())
      return absl::InvalidArgumentError("no state directory is given");
    return Start(abi_version, listen, count, state_dir, server);
  });
}

int32_t hvd_rendezvous_stop(hvd_rendezvous_server* server) {
  return Guarded([&]() -> absl::Status {
    if (server == nullptr) return absl::OkStatus();
    // The callback's thread is one of those for which the server's destructor waits.
    RETURN_IF_ERROR(hvd::rendezvous::c_api::CheckNotInCallback("to stop the server"));
    // A job refers to the server until it is destroyed.
    if (server->jobs > 0) {
      return absl::FailedPreconditionError(
          absl::StrCat("the server has ", server->jobs.load(), " jobs; remove them first"));
    }
    delete server;
    return absl::OkStatus();
  });
}

const char* hvd_rendezvous_address(const hvd_rendezvous_server* server, int32_t n) {
  const std::vector<std::string>& addresses = server->server->addresses();
  if (n < 0 || static_cast<size_t>(n) >= addresses.size()) return nullptr;
  return addresses[static_cast<size_t>(n)].c_str();
}

int32_t hvd_rendezvous_metrics(hvd_rendezvous_server* server, char** text) {
  return Guarded([&] { return GiveText(server->server->Metrics(), text); });
}

void hvd_rendezvous_job_options_init(hvd_rendezvous_job_options* options, size_t size) {
  hvd_rendezvous_job_options made = hvd::rendezvous::c_api::DefaultJobOptions();
  // The caller may have been compiled with another version of the structure. A longer one gets
  // zeros in the fields that this library does not know.
  std::memset(options, 0, size);
  std::memcpy(options, &made, size < sizeof(made) ? size : sizeof(made));
  options->size = size;
}

int32_t hvd_rendezvous_add_job(hvd_rendezvous_server* server,
                               const hvd_rendezvous_job_options* options,
                               hvd_rendezvous_job** job) {
  return Guarded([&]() -> absl::Status {
    ASSIGN_OR_RETURN(ServedJobOptions made, ToServedJobOptions(*options));
    // As in Start: the job has threads of its own.
    const hvd::SignalsBlocked blocked;
    auto handle = std::make_unique<hvd_rendezvous_job>();
    handle->home = server;
    // Counted first, so that hvd_rendezvous_stop in another thread does not destroy the server
    // under it.
    ++server->jobs;
    absl::StatusOr<std::unique_ptr<ServedJob>> added = server->server->AddJob(std::move(made));
    if (!added.ok()) {
      --server->jobs;
      return added.status();
    }
    handle->job = *std::move(added);
    *job = handle.release();
    return absl::OkStatus();
  });
}

int32_t hvd_rendezvous_remove_job(hvd_rendezvous_job* job) {
  return Guarded([&]() -> absl::Status {
    if (job == nullptr) return absl::OkStatus();
    RETURN_IF_ERROR(hvd::rendezvous::c_api::CheckNotInCallback("to remove a job"));
    hvd_rendezvous_server* const home = job->home;
    delete job;
    // After the job's end, so that hvd_rendezvous_stop in another thread does not destroy the
    // server under it.
    --home->jobs;
    return absl::OkStatus();
  });
}

const char* hvd_rendezvous_job_id(const hvd_rendezvous_job* job) { return job->job->id().c_str(); }

int32_t hvd_rendezvous_credentials(hvd_rendezvous_job* job, char** text) {
  return Guarded([&]() -> absl::Status {
    ASSIGN_OR_RETURN(const std::string made,
                     hvd::rendezvous::security::TokenText(job->job->credentials()));
    return GiveText(made, text);
  });
}

int32_t hvd_rendezvous_offer_slots(hvd_rendezvous_job* job, const hvd_rendezvous_host* hosts,
                                   int32_t count) {
  return Guarded([&]() -> absl::Status {
    ASSIGN_OR_RETURN(const std::vector<HostSlots> made, ToHosts(hosts, count));
    job->job->OfferSlots(made);
    return absl::OkStatus();
  });
}

int32_t hvd_rendezvous_set_limits(hvd_rendezvous_job* job, int32_t min_np, int32_t max_np) {
  return Guarded([&]() -> absl::Status {
    RETURN_IF_ERROR(hvd::rendezvous::c_api::CheckLimits(min_np, max_np));
    return job->job->SetLimits(min_np, max_np == 0 ? hvd::rendezvous::c_api::kMostWorkers : max_np);
  });
}

int32_t hvd_rendezvous_report_started(hvd_rendezvous_job* job, uint64_t worker, int64_t pid) {
  return Guarded([&] {
    job->job->ReportStarted(WorkerId(worker), pid);
    return absl::OkStatus();
  });
}

int32_t hvd_rendezvous_report_exit(hvd_rendezvous_job* job, const hvd_rendezvous_exit* exit) {
  return Guarded([&]() -> absl::Status {
    // Members that the caller's header lacks do not apply, for which the header prescribes 0.
    hvd_rendezvous_exit none = {};
    ASSIGN_OR_RETURN(
        const hvd_rendezvous_exit whole,
        hvd::rendezvous::c_api::WholeStruct("hvd_rendezvous_exit", *exit, none, kFirstExitSize));
    job->job->ReportExit(ToEvent(whole));
    return absl::OkStatus();
  });
}

int32_t hvd_rendezvous_drain(hvd_rendezvous_job* job, const char* host, double grace,
                             const char* reason) {
  return Guarded([&]() -> absl::Status {
    if (OrEmpty(host).empty()) return absl::InvalidArgumentError("no host to drain is named");
    ASSIGN_OR_RETURN(const absl::Duration time, ToDuration("grace", grace));
    job->job->Drain(host, time, TextOf(reason));
    return absl::OkStatus();
  });
}

int32_t hvd_rendezvous_request_stop(hvd_rendezvous_job* job, const char* reason, int32_t exit_code,
                                    double grace) {
  return Guarded([&]() -> absl::Status {
    // The range of a process's exit code; the kernel would cut off the rest.
    if (exit_code < 0 || exit_code > 255) {
      return absl::InvalidArgumentError(
          absl::StrCat("exit_code is ", exit_code, ", and must be from 0 to 255"));
    }
    ASSIGN_OR_RETURN(const absl::Duration time, ToDuration("grace", grace));
    job->job->RequestStop(TextOf(reason), exit_code, time);
    return absl::OkStatus();
  });
}

int32_t hvd_rendezvous_describe(hvd_rendezvous_job* job, char** json) {
  return Guarded([&] {
    return GiveText(hvd::rendezvous::reporting::JobJson(job->job->id(), job->job->Describe()),
                    json);
  });
}

int32_t hvd_rendezvous_job_metrics(hvd_rendezvous_job* job, char** text) {
  return Guarded([&] { return GiveText(job->job->Metrics(), text); });
}
