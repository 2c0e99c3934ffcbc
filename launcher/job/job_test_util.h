// A test fixture for RunJob: fake agents, a fake daemon, and a clock that the test controls.
#ifndef LAUNCHER_JOB_JOB_TEST_UTIL_H_
#define LAUNCHER_JOB_JOB_TEST_UTIL_H_

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "launcher/discovery/host_source.h"
#include "launcher/job/job.h"
#include "launcher/job/testing/fake_agents.h"
#include "launcher/spawn/ssh_launcher.h"
#include "proto/agent.pb.h"

namespace hvd::launcher::job {

// A clock that drives a test's scripted steps. Whenever the job is idle, the next step runs; at a
// null step, and after the last one, the time jumps to the deadline that the job waits for. So a
// test needs no real time and no second thread.
class StoryClock : public Clock {
 public:
  std::deque<std::function<void()>> steps;

  absl::Time Now() override { return now_; }
  bool AwaitWithDeadline(absl::Mutex& mutex, const absl::Condition& condition,
                         absl::Time deadline) override ABSL_NO_THREAD_SAFETY_ANALYSIS {
    while (!condition.Eval() && !steps.empty()) {
      const std::function<void()> step = std::move(steps.front());
      steps.pop_front();
      if (!step) break;
      mutex.Unlock();
      step();
      mutex.Lock();
    }
    if (condition.Eval()) return true;
    if (deadline == absl::InfiniteFuture()) {
      mutex.Await(condition);
      return true;
    }
    now_ = std::max(now_, deadline);
    return false;
  }

 private:
  absl::Time now_ = absl::FromUnixSeconds(1000);
};

struct StopCall {
  int exit_code;
  absl::Duration grace;
};

// The launcher's view of a daemon. Finishes at once on a request to stop.
struct FakeJobDaemon {
  std::function<void(const rendezvous::membership::Verdict&)> on_finished;
  std::function<void(const rendezvous::membership::Notice&)> on_notice;
  rendezvous::membership::Membership::View view;
  std::vector<StopCall> stops;
  int interrupts = 0;  // of them
  std::vector<int> signals;
  std::vector<pb::Fault> faults;
  std::vector<std::vector<rendezvous::membership::HostSlots>> reports;
  std::vector<StopCall> ends_at_commit;
  bool finished = false;
  bool deaf = false;  // never finishes
};

class FakeServer : public rendezvous::server::Server {
 public:
  explicit FakeServer(FakeJobDaemon& daemon) : daemon_(daemon) {}
  std::vector<std::string> addresses() const override { return {"127.0.0.1:4711"}; }
  void RequestStop(std::string, int exit_code, absl::Duration grace) override {
    daemon_.stops.push_back({exit_code, grace});
    if (daemon_.finished || daemon_.deaf) return;
    daemon_.finished = true;
    rendezvous::membership::Verdict verdict;
    verdict.exit_code = exit_code;
    verdict.summary = "stopped";
    daemon_.on_finished(verdict);
  }
  void Interrupt(std::string reason, int exit_code, absl::Duration grace) override {
    daemon_.interrupts++;
    RequestStop(std::move(reason), exit_code, grace);
  }
  void SignalWorkers(int signal) override { daemon_.signals.push_back(signal); }
  bool Harm(const std::string&, const pb::Fault& fault) override {
    daemon_.faults.push_back(fault);
    return true;
  }
  void ReportHosts(std::vector<rendezvous::membership::HostSlots> hosts) override {
    daemon_.reports.push_back(std::move(hosts));
  }
  void EndAtCommit(std::string, int exit_code, absl::Duration grace) override {
    daemon_.ends_at_commit.push_back({exit_code, grace});
  }
  void Drain(std::string, absl::Duration, std::string) override {}
  rendezvous::membership::Membership::View Describe() override { return daemon_.view; }
  absl::Duration BusyFor() override { return absl::ZeroDuration(); }
  std::string Metrics() override { return ""; }

 private:
  FakeJobDaemon& daemon_;
};

// A dynamic source whose hosts are found by FakeSearch.
class FakeSource : public discovery::HostSource {
 public:
  std::string name() const override { return "/hosts.sh"; }
  bool is_dynamic() const override { return true; }
  Hosts Next(const Cancellation&) override { return absl::CancelledError("never asked"); }
};

// A search that counts the searches in progress.
class FakeSearch : public HostSearch {
 public:
  explicit FakeSearch(int& running) : running_(running) { ++running_; }
  ~FakeSearch() override { --running_; }

 private:
  int& running_;
};

class JobTest : public ::testing::Test {
 protected:
  JobTest() {
    EXPECT_EQ(pipe2(out_, O_CLOEXEC | O_NONBLOCK), 0);
    EXPECT_EQ(pipe2(err_, O_CLOEXEC | O_NONBLOCK), 0);
    console::OutputSinkOptions options;
    options.stdout_fd = out_[1];
    options.stderr_fd = err_[1];
    output_ = std::make_unique<console::OutputSink>(std::move(options));
    plan_.num_proc = 4;
    plan_.start_timeout = absl::Seconds(30);
    plan_.source = std::make_shared<discovery::FixedHosts>(
        std::vector<rendezvous::membership::HostSlots>{{"alpha", 2}, {"beta", 2}});
    for (const char* host : {"alpha", "beta"}) plan_.hosts.push_back(Planned(host));
    dependencies_.start_agent = agents_.Starter();
    dependencies_.start_server = [this](rendezvous::server::ServerOptions options) {
      daemon_.on_finished = std::move(options.on_finished);
      daemon_.on_notice = std::move(options.on_notice);
      return absl::StatusOr<std::unique_ptr<rendezvous::server::Server>>(
          std::make_unique<FakeServer>(daemon_));
    };
  }
  ~JobTest() override {
    for (int fd : {out_[0], out_[1], err_[0], err_[1]}) close(fd);
  }

  void Then(std::function<void()> step) { clock_.steps.push_back(std::move(step)); }
  void ThenTimePasses() { clock_.steps.push_back(nullptr); }
  // An elastic job with a discovery script.
  void MakeElastic() {
    plan_.elastic.emplace();
    plan_.elastic->min_workers = 2;
    plan_.elastic->max_workers = 100;
    plan_.source = std::make_shared<FakeSource>();
    dependencies_.search_hosts = [this](OnHostsFound found) {
      found_ = std::move(found);
      return std::make_unique<FakeSearch>(searches_);
    };
  }
  void ThenFound(const std::vector<std::string>& hosts) {
    Then([this, hosts] {
      std::vector<plan::PlannedHost> found;
      for (const std::string& host : hosts) found.push_back(Planned(host));
      found_(found);
    });
  }
  // From now on the daemon knows `count` workers of the host, which train.
  void ThenWorkersOf(const std::string& host, size_t count) {
    Then([this, host, count] {
      daemon_.view.hosts.assign(1, {});
      daemon_.view.hosts[0].host = {host, 2};
      daemon_.view.hosts[0].attached = true;
      daemon_.view.hosts[0].workers.resize(count);
      daemon_.view.some_train = count > 0;
    });
  }
  void ThenSearchFails(absl::Status status) {
    Then([this, status] { found_(status); });
  }
  void ThenNotice(rendezvous::membership::Notice::Kind kind, const std::string& text, int rank = -1,
                  int size = 0) {
    rendezvous::membership::Notice notice;
    notice.kind = kind;
    notice.epoch = Epoch(7);
    notice.rank = rank;
    notice.size = size;
    notice.text = text;
    Then([this, notice] { daemon_.on_notice(notice); });
  }
  void ThenAllReady() {
    Then([this] {
      agents_.Ready("alpha");
      agents_.Ready("beta");
      Attach("alpha");
      Attach("beta");
    });
  }
  void Attach(const std::string& host) {
    rendezvous::membership::Membership::HostView view;
    view.host = {host, 2};
    view.attached = true;
    view.workers.resize(2);
    daemon_.view.hosts.push_back(view);
  }
  void ThenVerdict(const rendezvous::membership::Verdict& verdict) {
    Then([this, verdict] {
      daemon_.finished = true;
      daemon_.on_finished(verdict);
    });
  }
  void ThenAgentsExit() {
    Then([this] { agents_.ExitAll(); });
  }
  void ThenSignal(int signal) {
    Then([this, signal] { events_.Post(StopSignal{signal}); });
  }

  int Run() {
    const int exit_code = RunJob(plan_, dependencies_, events_, *output_);
    stdout_ = ReadAll(out_[0]);
    stderr_ = ReadAll(err_[0]);
    return exit_code;
  }
  static plan::PlannedHost Planned(const std::string& host) {
    plan::PlannedHost planned;
    planned.target = {host, false, std::make_shared<spawn::SshLauncher>(spawn::SshOptions())};
    planned.slots = 2;
    return planned;
  }
  static std::string ReadAll(int fd) {
    std::string text(1 << 16, '\0');
    text.resize(std::max<ssize_t>(0, read(fd, text.data(), text.size())));
    return text;
  }
  static rendezvous::membership::Verdict Success() {
    rendezvous::membership::Verdict verdict;
    verdict.success = true;
    verdict.summary = "4 ranks finished";
    return verdict;
  }
  static rendezvous::membership::Verdict Stopped() {
    rendezvous::membership::Verdict verdict;
    verdict.exit_code = 143;
    verdict.summary = "stopped: by a test";
    return verdict;
  }
  static rendezvous::membership::Verdict Failure(int exit_code) {
    rendezvous::membership::Verdict verdict;
    verdict.exit_code = exit_code;
    verdict.rank = 3;
    verdict.host = "beta";
    verdict.exit_meaning = absl::StrCat("exit code ", exit_code);
    verdict.consequences = 3;
    return verdict;
  }

  int out_[2];
  int err_[2];
  StoryClock clock_;
  JobEventQueue events_{clock_};
  std::unique_ptr<console::OutputSink> output_;
  FakeAgents agents_;
  FakeJobDaemon daemon_;
  plan::JobPlan plan_;
  JobDependencies dependencies_;
  OnHostsFound found_;
  int searches_ = 0;
  std::string stdout_;
  std::string stderr_;
};

}  // namespace hvd::launcher::job

#endif  // LAUNCHER_JOB_JOB_TEST_UTIL_H_
