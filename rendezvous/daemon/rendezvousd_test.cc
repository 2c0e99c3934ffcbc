#include "rendezvous/daemon/rendezvousd.h"

#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "gtest/gtest.h"
#include "rendezvous/journal/memory_journal_test_util.h"

namespace hvd::rendezvous::daemon {
namespace {

// Another daemon has the job as soon as this one serves it.
class LostStore final : public store::JobStore {
 public:
  const std::string& name() const override { return name_; }
  Terms terms() const override { return {"--store", true}; }
  const std::optional<pb::journal::Job>& identity() const override { return job_; }
  absl::Status SaveIdentity(const pb::journal::Job& job) override {
    job_ = job;
    if (job.addresses_size() > 0) on_lost_(absl::AbortedError("the lease is another daemon's"));
    return absl::OkStatus();
  }
  absl::StatusOr<OpenedJournal> OpenJournal(const std::string&, const policy::JobSpec&,
                                            absl::Time now) override {
    OpenedJournal opened;
    opened.journal = std::make_unique<journal::MemoryJournal>(now);
    return opened;
  }
  void OnLost(std::function<void(const absl::Status&)> callback) override {
    on_lost_ = std::move(callback);
  }

 private:
  const std::string name_ = "a store";
  std::optional<pb::journal::Job> job_;
  std::function<void(const absl::Status&)> on_lost_;
};

// Runs in a child process: the daemon requires a process with one thread.
[[noreturn]] void RunWithLostStore() {
  const std::string token_file = testing::TempDir() + "/rendezvousd_" + std::to_string(getpid());
  RendezvousdOptions options;
  options.listen = {"127.0.0.1:0"};
  options.token_file = token_file;
  const absl::StatusOr<int> result = RunRendezvousd(
      options, [](const store::StoreWait&) { return std::make_unique<LostStore>(); });
  std::fprintf(stderr, "%s\n", result.status().ToString().c_str());
  std::exit(unlink(token_file.c_str()) == 0 ? 3 : 4);  // it is kept for the next daemon
}

TEST(RunRendezvousdTest, StoreIsLost_TheJobIsLeftToItsNewDaemon) {
  testing::FLAGS_gtest_death_test_style = "threadsafe";
  EXPECT_EXIT(RunWithLostStore(), testing::ExitedWithCode(3),
              "ABORTED: the lease is another daemon's");
}

}  // namespace
}  // namespace hvd::rendezvous::daemon
