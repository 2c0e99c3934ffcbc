#include "rendezvous/daemon/rendezvousd.h"

#include <fcntl.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <cstdio>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/clock.h"
#include "base/event_loop.h"
#include "base/failpoint/failpoint.h"
#include "base/fd.h"
#include "base/net/http_listener.h"
#include "base/os/line_writer.h"
#include "base/os/starter.h"
#include "base/status_macros.h"
#include "base/text/duration_text.h"
#include "base/text/names.h"
#include "rendezvous/daemon/daemon_signals.h"
#include "rendezvous/daemon/owner.h"
#include "rendezvous/daemon/persistent_job.h"
#include "rendezvous/daemon/stderr_reporter.h"
#include "rendezvous/journal/journal.h"
#include "rendezvous/reporting/event_log.h"
#include "rendezvous/security/token_file.h"
#include "rendezvous/server/job_recovery.h"
#include "rendezvous/server/server.h"
#include "rendezvous/server/status_pages.h"

namespace hvd::rendezvous::daemon {
namespace {

// The grace of workers when the owner has ended.
constexpr absl::Duration kOwnerGrace = absl::Seconds(5);

std::string Line(absl::string_view text) {
  return absl::StrCat("horovod-rendezvousd: ", text::OnOneLine(text), "\n");
}

// The daemon's parts, in the order of construction; they are destroyed in reverse.
class Daemon {
 public:
  Daemon(const RendezvousdOptions& options, const store::JobStoreOpener& open_store)
      : options_(options), open_store_(open_store) {}

  // Returns the job's exit code.
  // Errors: those of RunRendezvousd.
  absl::StatusOr<int> Run() {
    ASSIGN_OR_RETURN(Fd signals, TakeDaemonSignals());
    ASSIGN_OR_RETURN(signals_, DaemonSignals::Create(std::move(signals)));
    ASSIGN_OR_RETURN(loop_, EventLoop::Create());
    if (options_.owner >= 0) {
      ASSIGN_OR_RETURN(owner_, Owner::Open(*loop_, options_.owner));
      // The owner's end is detected in two ways, by its process and by its socket: a process that
      // it has forked may keep the socket open.
      absl::StatusOr<os::Starter> starter = os::Starter::Find({/*parent=*/true, /*input=*/false});
      if (starter.ok()) starter_ = *std::move(starter);
    }
    // A standby daemon that does not answer /healthz would be restarted by its orchestrator again
    // and again.
    if (options_.etcd.stands_by) RETURN_IF_ERROR(ServeStatusPages());
    // May block for a long time: with etcd, until this daemon leads the job. Signals are polled
    // meanwhile (StoreWait::gives_up).
    const absl::Status opened = OpenJob();
    // A signal has ended the wait for another daemon. Nothing has started, so the signal may
    // terminate this process in the default way.
    if (absl::IsCancelled(opened)) ReleaseDaemonSignals();
    RETURN_IF_ERROR(opened);
    reporting::JobTally so_far;
    if (journal_ != nullptr) {
      ASSIGN_OR_RETURN(const server::Recovered found, server::Recover(options_.job, *journal_));
      if (found.verdict.has_value()) {
        Say(absl::StrCat("the job of ", store_->name(), " has ended: ", found.verdict->summary));
        return found.verdict->exit_code;
      }
      // The summary at the end counts what happened under earlier daemons, too.
      so_far = found.history.tally();
      RETURN_IF_ERROR(FAILPOINT_STATUS("daemon.start.recovered"));
    }
    if (!options_.event_log.empty()) {
      ASSIGN_OR_RETURN(event_log_, reporting::EventLog::Open(options_.event_log));
      event_log_->OnLost([this](const std::string& what) { Say(what); });
    }
    reporter_ = std::make_unique<StderrReporter>(
        *loop_, Clock::Real(), reporting::JobSummary(options_.job.min_workers, std::move(so_far)),
        [this](const std::string& line) { Say(line); });
    // After the reporter exists: the job's thread reports notices from now on.
    RETURN_IF_ERROR(Serve());
    // Only now, since the actions use server_. A signal that came before is pending in the signalfd
    // and handled at once.
    signals_->Start(SignalActions());
    RETURN_IF_ERROR(TellOwner());
    reporter_->Watch(*server_);
    loop_->Run();
    reporter_->Stop();
    // From here on server_ may be destroyed, so no action must use it.
    signals_->JobIsOver();
    return End();
  }

 private:
  // Does not block on the reader of stderr.
  void Say(absl::string_view text) { console_.Write(Line(text)); }

  DaemonSignals::Actions SignalActions() {
    DaemonSignals::Actions actions;
    actions.stop = [this](const std::string& reason, int exit_code, absl::Duration grace) {
      // The second signal ends the job without a grace, in which nothing could be saved.
      if (grace > absl::ZeroDuration()) return server_->Interrupt(reason, exit_code, grace);
      server_->RequestStop(reason, exit_code, grace);
    };
    if (store_ != nullptr) {
      // Only a kept job can be left. Without this action SIGTERM ends the job.
      actions.leave = [this] {
        loop_->Post([this] {
          left_ = true;
          loop_->Stop();
        });
      };
    }
    return actions;
  }

  absl::Status TellOwner() {
    if (owner_ == nullptr) return absl::OkStatus();
    // If the owner has ended already, Watch reports it.
    const absl::Status told = owner_->Tell(job_, server_->addresses());
    if (!told.ok()) Say(absl::StrCat("the owner got no credentials: ", told.message()));
    Owner::Callbacks callbacks;
    callbacks.on_drain = [this](const std::string& host) {
      if (!options_.job.elastic.has_value()) return;
      server_->Drain(host, options_.job.elastic->drain_grace, "the engine takes it away");
    };
    callbacks.on_end = [this] { EndWithOwner(); };
    // Watched only now, since its end uses server_. If the owner has ended already, its pidfd is
    // readable at once.
    if (starter_.has_value()) {
      starter_->Watch(*loop_, [this](const std::string&) { EndWithOwner(); });
    }
    return owner_->Watch(std::move(callbacks));
  }

  void EndWithOwner() {
    // A second RequestStop would shorten the grace.
    if (std::exchange(owner_is_gone_, true)) return;
    server_->RequestStop("its owner has ended it, or has exited", 128 + SIGTERM, kOwnerGrace);
  }

  void KeepTokenFile() {
    if (token_file_ != nullptr) token_file_->Keep();
  }

  absl::StatusOr<int> End() {
    if (left_ || !journal_error_.ok()) KeepTokenFile();  // the next daemon uses it
    // Before left_: the exit must say that the disk or etcd has failed, even if SIGTERM came in the
    // meantime.
    if (!journal_error_.ok()) return journal_error_;
    if (left_) {
      ReleaseDaemonSignals();
      Say(absl::StrCat(
          "SIGTERM: leaves the job as it is, for a horovod-rendezvousd with the same "
          "options within ",
          text::DurationText(options_.job.reattach_timeout), " (to end the job, send SIGINT)"));
      return 128 + SIGTERM;
    }
    reporter_->SumUp(server_->Describe(), verdict_.success);
    Say(verdict_.summary);
    return verdict_.exit_code;
  }

  absl::Status OpenJob() {
    ASSIGN_OR_RETURN(store_, open_store_({[this](const std::string& line) { Say(line); },
                                          DaemonSignalIsPending}));
    if (store_ == nullptr) {
      ASSIGN_OR_RETURN(job_, NewJob(options_.listen));
      return absl::OkStatus();
    }
    // Set before the journal is opened, which may take long: the leadership may be lost during
    // that, and then the loop ends as soon as it runs.
    store_->OnLost([this](const absl::Status& why) { LeaveFor(why); });
    ASSIGN_OR_RETURN(job_, OpenPersistentJob(*store_, options_.job, options_.listen));
    ASSIGN_OR_RETURN(store::JobStore::OpenedJournal opened,
                     store_->OpenJournal(job_.job_id, options_.job, Clock::Real().Now()));
    journal_ = std::move(opened.journal);
    if (!opened.warning.empty()) Say(opened.warning);
    return absl::OkStatus();
  }

  // Ends this process without ending the job, which the next daemon resumes, or another one already
  // has. Callable from any thread.
  void LeaveFor(const absl::Status& why) {
    loop_->Post([this, why] {
      journal_error_ = why;
      loop_->Stop();
    });
  }

  server::ServerOptions MakeServerOptions() {
    server::ServerOptions made;
    made.job_id = job_.job_id;
    made.job = options_.job;
    made.listen = job_.listen;
    made.agent_timeout = options_.agent_timeout;
    made.credentials = job_.daemon;
    made.secret_key = job_.secret_key;
    made.journal = journal_.get();
    // These callbacks come from the job's thread, which must not wait. The event log has a writer
    // thread; what the loop owns is changed on the loop's thread.
    made.on_finished = [this](const membership::Verdict& verdict) {
      if (event_log_ != nullptr) event_log_->Write(verdict);
      loop_->Post([this, verdict] {
        verdict_ = verdict;
        loop_->Stop();
      });
    };
    made.on_notice = [this](const membership::Notice& notice) {
      if (event_log_ != nullptr) event_log_->Write(notice);
      loop_->Post([this, notice, now = Clock::Real().Now()] { reporter_->Report(notice, now); });
    };
    made.on_journal_error = [this](const absl::Status& status) { LeaveFor(status); };
    return made;
  }

  absl::Status ServeStatusPages() {
    if (options_.metrics.empty() || metrics_ != nullptr) return absl::OkStatus();
    ASSIGN_OR_RETURN(metrics_,
                     net::HttpListener::Start(options_.metrics, [this](const std::string& path) {
                       server::Server* const server = served_;
                       return server == nullptr ? server::AnswerStandbyPage(path)
                                                : server::AnswerStatusPage(path, *server);
                     }));
    Say(absl::StrCat("metrics at http://", metrics_->address(), "/metrics"));
    return absl::OkStatus();
  }

  absl::Status Serve() {
    if (!options_.token_file.empty()) {
      // Written before the server listens, so that an agent that can connect finds the credentials.
      ASSIGN_OR_RETURN(token_file_, security::TokenFile::Write(options_.token_file, job_.hosts));
    }
    const absl::Status status = Listen();
    // If the listener fails, an earlier job continues without this daemon and needs the token file.
    if (!status.ok() && store_ != nullptr) KeepTokenFile();
    return status;
  }

  absl::Status Listen() {
    RETURN_IF_ERROR(FAILPOINT_STATUS("daemon.start.token_written"));
    ASSIGN_OR_RETURN(server_, server::Server::Start(MakeServerOptions()));
    RETURN_IF_ERROR(FAILPOINT_STATUS("daemon.start.listening"));
    if (store_ != nullptr) {
      // Stored before they are printed: agents that learn an address must find the next daemon
      // there.
      RETURN_IF_ERROR(KeepAddresses(*store_, server_->addresses()));
      FAILPOINT("daemon.start.addresses_kept");
    }
    served_ = server_.get();
    RETURN_IF_ERROR(ServeStatusPages());
    // Last, and flushed, because stdout may be a pipe: who reads an address may connect at once.
    for (const std::string& address : server_->addresses()) std::printf("%s\n", address.c_str());
    std::fflush(stdout);
    return absl::OkStatus();
  }

  const RendezvousdOptions& options_;
  const store::JobStoreOpener& open_store_;
  os::LineWriter console_{Fd(fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 3)), [](uint64_t count) {
                            return Line(absl::StrCat(count, " lines were dropped here"));
                          }};
  // Destroyed late: it terminates the process if a destructor hangs.
  std::unique_ptr<DaemonSignals> signals_;
  std::unique_ptr<EventLoop> loop_;
  std::unique_ptr<Owner> owner_;        // null: none
  std::optional<os::Starter> starter_;  // the owner's process, if it is visible
  bool owner_is_gone_ = false;
  std::unique_ptr<store::JobStore> store_;
  PersistentJob job_;
  std::unique_ptr<journal::Journal> journal_;
  std::unique_ptr<reporting::EventLog> event_log_;
  std::unique_ptr<security::TokenFile> token_file_;  // null: no --token-file
  membership::Verdict verdict_;  // used by the loop's thread only, like the next
  absl::Status journal_error_;
  bool left_ = false;  // SIGTERM left the job to the next daemon
  std::unique_ptr<StderrReporter> reporter_;
  std::unique_ptr<server::Server> server_;
  std::atomic<server::Server*> served_{nullptr};  // server_, once agents can reach it
  std::unique_ptr<net::HttpListener> metrics_;
};

}  // namespace

absl::StatusOr<int> RunRendezvousd(const RendezvousdOptions& options,
                                   const store::JobStoreOpener& open_store) {
  return Daemon(options, open_store).Run();
}

}  // namespace hvd::rendezvous::daemon
