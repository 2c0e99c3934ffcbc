// The functions of horovod/rendezvous.h for jobs in a state directory.
#include <string>

#include "base/status_macros.h"
#include "horovod/rendezvous.h"
#include "rendezvous/c_api/guarded.h"
#include "rendezvous/c_api/handles.h"
#include "rendezvous/c_api/job_options.h"

using hvd::rendezvous::c_api::Guarded;
using hvd::rendezvous::server::EarlierWorker;
using hvd::rendezvous::server::KeptJob;

int32_t hvd_rendezvous_kept_jobs(hvd_rendezvous_server* server, void* context,
                                 void (*take)(void* context, const hvd_rendezvous_kept_job* job)) {
  return Guarded([&] {
    // KeptJobs returns a copy: `take` may add or forget the job, which changes the server's list.
    for (const KeptJob& kept : server->server->KeptJobs()) {
      hvd_rendezvous_result ended = {};
      if (kept.ended.has_value()) ended = hvd::rendezvous::c_api::ToResult(*kept.ended);
      const hvd::rendezvous::c_api::Sizes sizes = hvd::rendezvous::c_api::ToSizes(kept.spec);
      const std::string problem(kept.problem.message());
      hvd_rendezvous_kept_job told = {};
      told.size = sizeof(told);
      told.id = kept.id.c_str();
      told.np = sizes.np;
      told.min_np = sizes.min_np;
      told.max_np = sizes.max_np;
      told.starts_workers = kept.starts_workers ? 1 : 0;
      told.ended = kept.ended.has_value() ? &ended : nullptr;
      told.problem = kept.problem.ok() ? nullptr : problem.c_str();
      take(context, &told);
    }
    return absl::OkStatus();
  });
}

int32_t hvd_rendezvous_forget_job(hvd_rendezvous_server* server, const char* id) {
  return Guarded([&] { return server->server->ForgetJob(hvd::rendezvous::c_api::OrEmpty(id)); });
}

int32_t hvd_rendezvous_earlier_workers(hvd_rendezvous_job* job, void* context,
                                       void (*take)(void* context,
                                                    const hvd_rendezvous_earlier_worker* worker)) {
  return Guarded([&] {
    // A copy here too, taken without a lock held: `take` may report on the worker at once.
    for (const EarlierWorker& earlier : job->job->EarlierWorkers()) {
      const hvd_rendezvous_earlier_worker told = {sizeof(told), earlier.worker.value(),
                                                  earlier.host.c_str(), earlier.pid};
      take(context, &told);
    }
    return absl::OkStatus();
  });
}

int32_t hvd_rendezvous_start_again(hvd_rendezvous_job* job, uint64_t worker) {
  return Guarded([&] { return job->job->StartAgain(hvd::WorkerId(worker)); });
}
