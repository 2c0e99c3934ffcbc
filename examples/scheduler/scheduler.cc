#include "examples/scheduler/scheduler.h"

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "examples/scheduler/packing.h"

namespace {

constexpr absl::Duration kStopGrace = absl::Seconds(5);

void Say(const std::string& line) {
  std::printf("%s\n", line.c_str());
  std::fflush(stdout);
}

}  // namespace

Scheduler::Scheduler(hvd::EventLoop& loop, hvd::rendezvous::server::RendezvousServer& server,
                     int slots)
    : loop_(loop), server_(server), slots_(slots) {
  for (int i = 0; i < slots; ++i) free_.insert(absl::StrCat("slot", i));
}

absl::Status Scheduler::Add(const JobRequest& request) {
  auto job = std::make_unique<Job>();
  Job* const self = job.get();
  job->request = request;
  hvd::rendezvous::server::ServedJobOptions options;
  options.job_id = request.name;
  options.spec.min_workers = request.min;
  options.spec.max_workers = request.max;
  options.spec.start_workers = request.min;
  options.spec.start_timeout = absl::Hours(24);  // it may have to wait until other jobs end
  options.spec.elastic.emplace();
  // The server calls these on the thread of the job, which must not block: each posts the work to
  // the scheduler's thread, so that the rest of this class needs no locks.
  options.start_worker = [this, self](const hvd::rendezvous::server::WorkerStart& start) {
    loop_.Post([this, self, start] { StartWorker(*self, start); });
  };
  options.stop_worker = [this, self](hvd::WorkerId worker, absl::Duration grace) {
    loop_.Post([this, self, worker, grace] { StopWorker(*self, worker, grace); });
  };
  options.on_host_free = [this, self](const std::string& slot) {
    loop_.Post([this, self, slot] { OnSlotFree(*self, slot); });
  };
  options.on_finished = [this, self](const hvd::rendezvous::membership::Verdict& verdict) {
    loop_.Post([this, self, verdict] { OnFinished(*self, verdict); });
  };
  ASSIGN_OR_RETURN(job->served, server_.AddJob(std::move(options)));
  jobs_.push_back(std::move(job));
  return absl::OkStatus();
}

int Scheduler::Run() {
  Decide();
  loop_.Run();
  return exit_code_;
}

void Scheduler::Stop() {
  const absl::Duration grace = std::exchange(stopping_, true) ? absl::ZeroDuration() : kStopGrace;
  for (const auto& job : jobs_) {
    if (!job->ended) job->served->RequestStop("the scheduler was stopped", 130, grace);
  }
}

// Compares each job's share with its slots. Jobs with too many slots give them back first. A slot
// is free when OnSlotFree is called, which then decides again.
void Scheduler::Decide() {
  if (std::all_of(jobs_.begin(), jobs_.end(), [](const auto& job) { return job->ended; })) {
    return loop_.Stop();
  }
  std::vector<Job*> jobs;
  std::vector<Demand> demands;
  int slots = slots_;
  for (const auto& job : jobs_) {
    if (job->ending) slots -= static_cast<int>(job->slots.size());
    if (job->ended || job->ending || stopping_) continue;
    jobs.push_back(job.get());
    demands.push_back({job->request.min, job->request.max, job->running});
  }
  // Slots that ending jobs still hold can't be given to others.
  const std::vector<int> shares = Pack(slots, demands);
  for (const bool shrink : {true, false}) {
    for (size_t i = 0; i < jobs.size(); ++i) {
      if (shrink == (shares[i] < static_cast<int>(jobs[i]->offered.size()))) {
        Resize(*jobs[i], shares[i]);
      }
    }
  }
}

void Scheduler::Resize(Job& job, int share) {
  const size_t before = job.offered.size();
  while (static_cast<int>(job.offered.size()) > share) job.offered.erase(--job.offered.end());
  const bool first = !job.running && share > 0;
  // A job starts only when its smallest number of slots is free: its first world needs them at
  // once.
  if (first && static_cast<int>(free_.size()) < job.request.min) return;
  while (static_cast<int>(job.offered.size()) < share && !free_.empty()) {
    const std::string slot = *free_.begin();
    free_.erase(slot);
    job.slots.insert(slot);
    job.offered.insert(slot);
  }
  if (job.offered.size() == before) return;
  Say(absl::StrCat(job.request.name, ": ", before, " -> ", job.offered.size(),
                   job.offered.size() == 1 ? " slot" : " slots", first ? " (starts)" : "",
                   job.offered.size() < before ? " (gives back at its next commit)" : ""));
  job.running = true;
  std::vector<hvd::rendezvous::membership::HostSlots> hosts;
  for (const std::string& slot : job.offered) hosts.push_back({slot, 1});
  job.served->OfferSlots(hosts);
}

void Scheduler::StartWorker(Job& job, const hvd::rendezvous::server::WorkerStart& start) {
  hvd::Environment environment = hvd::ReadEnvironment();
  for (const auto& [name, value] : start.environment) environment[name] = value;
  hvd::os::SpawnOptions options;
  options.file = "sh";
  options.argv = {"sh", "-c", absl::StrCat("exec ", job.request.command)};
  options.environment.emplace();
  for (const auto& [name, value] : environment) {
    options.environment->push_back(absl::StrCat(name, "=", value));
  }
  auto process = hvd::os::Process::Spawn(options);
  const hvd::WorkerId id = start.worker;
  absl::Status status = process.status();
  if (status.ok()) {
    status = loop_.Watch(process->pidfd(), EPOLLIN,
                         [this, &job, id](uint32_t) { OnWorkerExit(job, id); });
  }
  if (!status.ok()) {
    // A worker that can't be started is reported like one that has exited.
    hvd::rendezvous::membership::WorkerExited exit;
    exit.worker = id;
    exit.start_error = std::string(status.message());
    return job.served->ReportExit(exit);
  }
  job.served->ReportStarted(id, process->pid());
  job.workers.emplace(id, Worker{start.host, *std::move(process)});
}

void Scheduler::StopWorker(Job& job, hvd::WorkerId worker, absl::Duration grace) {
  const auto found = job.workers.find(worker);
  if (found == job.workers.end()) return;
  found->second.process.SignalGroup(SIGTERM);
  loop_.After(grace, [&job, worker] {
    const auto still = job.workers.find(worker);
    if (still != job.workers.end()) still->second.process.SignalGroup(SIGKILL);
  });
}

void Scheduler::OnWorkerExit(Job& job, hvd::WorkerId worker) {
  const auto found = job.workers.find(worker);
  loop_.Forget(found->second.process.pidfd());
  found->second.process.SignalGroup(SIGKILL);  // the worker's descendants
  const hvd::os::ExitStatus status = found->second.process.Wait();
  job.workers.erase(found);
  hvd::rendezvous::membership::WorkerExited exit;
  exit.worker = worker;
  exit.exit_code = status.exit_code;
  exit.signal = status.signal;
  exit.core_dumped = status.core_dumped;
  job.served->ReportExit(exit);
}

void Scheduler::OnSlotFree(Job& job, const std::string& slot) {
  if (job.slots.erase(slot) == 0) return;
  // A slot that the job could have kept: the job is about to end, so it gets no more slots.
  if (job.offered.erase(slot) > 0) job.ending = true;
  free_.insert(slot);
  if (!job.ended) Say(absl::StrCat(job.request.name, ": ", slot, " is free"));
  Decide();
}

void Scheduler::OnFinished(Job& job, const hvd::rendezvous::membership::Verdict& verdict) {
  Say(absl::StrCat(job.request.name, ": ended: ", verdict.summary));
  if (exit_code_ == 0) exit_code_ = verdict.exit_code;
  job.ended = true;
  free_.insert(job.slots.begin(), job.slots.end());
  job.slots.clear();
  job.offered.clear();
  Decide();
}
