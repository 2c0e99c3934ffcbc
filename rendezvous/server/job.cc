#include "rendezvous/server/job.h"

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <type_traits>
#include <utility>
#include <variant>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "base/failpoint/failpoint.h"
#include "base/status_macros.h"
#include "rendezvous/journal/event_bounds.h"
#include "rendezvous/transport/message_time.h"

namespace hvd::rendezvous::server {
namespace {

// A one-time result: the report that a caller waits for. Thread-safe.
class ReportAnswer {
 public:
  // Sets the result; null: there is none. Only the first call has an effect.
  void End(std::shared_ptr<const reporting::JobReport> report) {
    absl::MutexLock lock(&mu_);
    if (!std::exchange(over_, true)) report_ = std::move(report);
  }

  // Returns false if there is no result after this time.
  bool Await(absl::Duration patience) {
    absl::MutexLock lock(&mu_);
    // The real clock even in tests: this bounds how long a caller hangs, and a clock that nobody
    // advances would never end the wait.
    Clock& clock = Clock::Real();
    return clock.AwaitWithDeadline(mu_, absl::Condition(&over_), clock.Now() + patience);
  }

  std::shared_ptr<const reporting::JobReport> report() {
    absl::MutexLock lock(&mu_);
    return report_;
  }

 private:
  absl::Mutex mu_;
  bool over_ ABSL_GUARDED_BY(mu_) = false;
  std::shared_ptr<const reporting::JobReport> report_ ABSL_GUARDED_BY(mu_);
};

template <typename T, typename = void>
struct HasCall : std::false_type {};
template <typename T>
struct HasCall<T, std::void_t<decltype(std::declval<T>().call)>> : std::true_type {};

// The call that the event is the request of; nullopt: it is none.
std::optional<membership::CallId> CallOf(const membership::Event& event) {
  return std::visit(
      [](const auto& each) -> std::optional<membership::CallId> {
        using Kind = std::decay_t<decltype(each)>;
        if constexpr (!std::is_same_v<Kind, membership::CallCancelled> && HasCall<Kind>::value) {
          return each.call;
        }
        return std::nullopt;
      },
      event);
}

}  // namespace

absl::StatusOr<std::unique_ptr<Job>> Job::Create(JobOptions options, Clock& clock) {
  Recovered recovered;
  if (options.journal == nullptr) {
    // Without a journal no daemon resumes the job.
    options.spec.reattach_timeout = absl::ZeroDuration();
    recovered.newest = clock.Now();
    recovered.machine = std::make_unique<membership::Membership>(options.spec, recovered.newest);
  } else {
    ASSIGN_OR_RETURN(recovered, Recover(options.spec, *options.journal));
  }
  if (recovered.verdict.has_value()) {
    return absl::FailedPreconditionError(
        absl::StrCat("the job has ended: ", recovered.verdict->summary));
  }
  std::unique_ptr<Job> job(new Job(std::move(options), std::move(recovered), clock));
  // The first event: the job gets calls only once JobRouter::Add has its token. An agent that
  // attached earlier would be taken for one that the restart has cut off.
  if (job->resumed()) {
    job->Post(membership::Restarted{});
    FAILPOINT("daemon.start.restarted");
  }
  return job;
}

Job::Job(JobOptions options, Recovered recovered, Clock& clock)
    : options_(std::move(options)),
      clock_(clock),
      resumed_(recovered.had_events),
      awaited_(recovered.machine->Attached()),
      // The wall clock may be behind the newest event (it was set back, or another host's clock was
      // ahead). The machine's time must not go back, so it is shifted.
      shift_(std::max(absl::ZeroDuration(), recovered.newest - clock.Now())),
      machine_(std::move(recovered.machine)),
      history_(std::move(recovered.history)),
      rendezvous_(MakeRendezvousOptions()),
      agents_(MakeAgentOptions()),
      driver_(
          MakeMachine(),
          [this](membership::Effect effect) {
            std::visit([this](auto& each) { CarryOut(each); }, effect);
          },
          clock) {}

Job::~Job() { Close(); }

RendezvousServiceOptions Job::MakeRendezvousOptions() {
  RendezvousServiceOptions made;
  made.secret_key = options_.secret_key;
  made.elastic = options_.spec.elastic.has_value();
  if (made.elastic) {
    made.drain_grace = options_.spec.elastic->drain_grace;
    made.on_corruption = options_.spec.elastic->on_corruption;
  }
  made.encrypt_data = options_.spec.encrypt_data;
  made.tells = options_.on_notice != nullptr;
  made.post = [this](membership::Event event) { Post(std::move(event)); };
  made.check_room = [this] { return CheckRoom(); };
  // These functions use driver_, which is constructed after the services. No call comes before the
  // job is added to a server.
  made.world = [this](const std::function<void(const membership::WorldPtr&)>& use) {
    driver_.Run([this, use] { use(machine_->world()); });
  };
  made.command = [this] { return agents_.command(); };
  made.report = [this](const std::function<void(const reporting::JobReport&)>& use) {
    Report(use);
  };
  return made;
}

AgentServiceOptions Job::MakeAgentOptions() {
  AgentServiceOptions made;
  made.welcome.set_job_id(options_.job_id);
  made.welcome.set_encrypt_data(options_.spec.encrypt_data);
  if (options_.journal != nullptr) {
    made.welcome.set_reattach_ms(transport::ToMilliseconds(options_.spec.reattach_timeout));
  }
  if (options_.spec.elastic.has_value()) {
    made.welcome.set_elastic(true);
    made.welcome.set_drain_grace_ms(transport::ToMilliseconds(options_.spec.elastic->drain_grace));
  }
  made.post = [this](membership::Event event) { Post(std::move(event)); };
  made.check_room = [this] { return CheckRoom(); };
  made.on_fault_done = options_.on_fault_done;
  return made;
}

StateMachine Job::MakeMachine() {
  StateMachine made;
  made.apply = [this](const membership::Event& event, absl::Time now) {
    return machine_->Apply(event, now + shift_);
  };
  made.next_deadline = [this] { return machine_->NextDeadline() - shift_; };
  if (options_.journal != nullptr) {
    made.record = [this](const std::vector<const membership::Event*>& events, absl::Time now) {
      return Record(events, now + shift_);
    };
  }
  return made;
}

bool Job::Record(const std::vector<const membership::Event*>& events, absl::Time now) {
  // All events in the journal have been applied, so the machine's state can replace them. If this
  // fails, the journal is only longer.
  if (options_.journal->WantsSnapshot()) {
    (void)options_.journal->Compact({SaveJob(*machine_, history_), now});
  }
  bool any = false;
  for (const membership::Event* event : events) {
    // Watches are not recorded: a parked watch does not change the state, and the worker repeats it
    // after a restart.
    if (std::holds_alternative<membership::WatchRequested>(*event)) continue;
    options_.journal->Append(*event, now);
    any = true;
  }
  if (!any) return true;
  const absl::Status status = options_.journal->Sync();
  if (!status.ok() && options_.on_journal_error) options_.on_journal_error(status);
  FAILPOINT("daemon.event.recorded");
  return status.ok();
}

void Job::Post(membership::Event event) {
  // Here, where everything comes in: an event that the journal refuses would end the whole job.
  size_t bytes = 0;
  const absl::Status recordable = journal::Bound(event, &bytes);
  const std::optional<membership::CallId> call = CallOf(event);
  if (!recordable.ok() && call.has_value()) {
    return rendezvous_.Handle(membership::ReplyStatus{*call, recordable});
  }
  driver_.Post(std::move(event), bytes);
}

absl::Status Job::CheckRoom() {
  const size_t waiting = driver_.waiting();
  if (waiting < kMostWaiting) return absl::OkStatus();
  return absl::UnavailableError(absl::StrCat("the job has ", waiting,
                                             " bytes of events that wait; at most ", kMostWaiting,
                                             " are possible"));
}

void Job::Report(const std::function<void(const reporting::JobReport&)>& use) {
  driver_.Run([this, use] {
    use(reporting::JobReport{options_.job_id, machine_->Describe(), history_, Now()});
  });
}

std::optional<reporting::JobReport> Job::Report() {
  const auto answer = std::make_shared<ReportAnswer>();
  // If the driver drops the task because the job is closed, the deleter of `asked` ends the wait.
  std::shared_ptr<ReportAnswer> asked(answer.get(),
                                      [answer](ReportAnswer*) { answer->End(nullptr); });
  Report([asked = std::move(asked)](const reporting::JobReport& report) {
    asked->End(std::make_shared<const reporting::JobReport>(report));
  });
  // If the job's thread hangs already, do not wait once more: monitoring must not pile up requests.
  const bool hangs = BusyFor() >= kPatience;
  const bool answered = answer->Await(hangs ? absl::ZeroDuration() : kPatience);
  absl::MutexLock lock(&mu_);
  std::shared_ptr<const reporting::JobReport> report = answer->report();
  if (report != nullptr) newest_report_ = report;
  if (!answered) report = newest_report_;
  return report == nullptr ? std::nullopt : std::make_optional(*report);
}

membership::Membership::View Job::Describe() {
  membership::Membership::View view = Report().value_or(reporting::JobReport{}).view;
  // The machine's times are those of the journal, and callers compare with the clock. An infinite
  // time stays infinite.
  view.waits_until -= shift_;
  return view;
}

void Job::CarryOut(const membership::HoldHostEffect& effect) {
  agents_.Handle(effect);
  if (effect.took_part && options_.on_host_held) options_.on_host_held(effect.host);
}

void Job::CarryOut(const membership::Notice& notice) {
  history_.Observe(notice, Now());
  if (options_.on_notice) options_.on_notice(notice);
}

void Job::CarryOut(const membership::JobFinished& effect) {
  FAILPOINT("daemon.verdict.decided");
  over_ = true;
  // Before on_finished, whose receiver may begin to shut down: an agent that attaches from now on
  // learns that the job is over.
  agents_.JobOver();
  if (options_.on_finished) options_.on_finished(effect.verdict);
  FAILPOINT("daemon.verdict.told");
}

absl::Status Job::EndStatus() const {
  if (over_) return absl::OkStatus();
  // Agents and workers retry after this status, until a daemon resumes the job.
  if (options_.journal != nullptr) return absl::UnavailableError("the rendezvous daemon pauses");
  return absl::FailedPreconditionError("the rendezvous daemon is shut down");
}

void Job::Close() {
  {
    absl::MutexLock lock(&mu_);
    if (std::exchange(closed_, true)) return;
  }
  // The machine stops first: the ends of calls and streams that Close causes below must not become
  // events of the job (HostLost, for example).
  driver_.Stop();
  // Only now: over_ belongs to the driver's thread, which Stop has joined.
  const absl::Status status = EndStatus();
  rendezvous_.Close(status.ok() ? absl::FailedPreconditionError("the job is over") : status);
  agents_.Close(status);
}

bool Job::busy() { return rendezvous_.busy() || agents_.busy(); }

}  // namespace hvd::rendezvous::server
