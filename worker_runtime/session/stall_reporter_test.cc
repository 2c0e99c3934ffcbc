#include "worker_runtime/session/stall_reporter.h"

#include <vector>

#include "absl/synchronization/notification.h"
#include "gtest/gtest.h"

namespace hvd::worker_runtime::session {
namespace {

// A fake client: refuses reports without give_up, and answers reports without operations only when
// it is cancelled.
class ScriptedClient : public rendezvous::client::RendezvousClient {
 public:
  explicit ScriptedClient(absl::Notification& reached) : reached_(reached) {}

  absl::StatusOr<pb::ReportStallResponse> ReportStall(const pb::ReportStallRequest& request,
                                                      absl::Duration) override {
    if (request.waiting().empty()) {
      reached_.Notify();
      cancelled_.WaitForNotification();
      return absl::CancelledError("cancelled");
    }
    if (request.give_up()) return pb::ReportStallResponse();
    return absl::FailedPreconditionError("nobody would be told");
  }
  void CancelAll() override { cancelled_.Notify(); }

  absl::StatusOr<pb::JoinWorldResponse> JoinWorld(const pb::JoinWorldRequest&,
                                                  absl::Duration) override {
    return absl::UnimplementedError("");
  }
  absl::StatusOr<pb::GetMembersResponse> GetMembers(const pb::GetMembersRequest&,
                                                    absl::Duration) override {
    return absl::UnimplementedError("");
  }
  absl::StatusOr<pb::WatchEpochResponse> WatchEpoch(const pb::WatchEpochRequest&,
                                                    absl::Duration) override {
    return absl::UnimplementedError("");
  }
  absl::StatusOr<pb::ExchangeResponse> Exchange(const pb::ExchangeRequest&,
                                                absl::Duration) override {
    return absl::UnimplementedError("");
  }
  absl::StatusOr<pb::ReportResponse> Report(const pb::ReportRequest&, absl::Duration) override {
    return absl::UnimplementedError("");
  }
  absl::StatusOr<pb::GetStatusResponse> GetStatus(absl::Duration) override {
    return absl::UnimplementedError("");
  }

 private:
  absl::Notification& reached_;
  absl::Notification cancelled_;
};

StallReporter::Report ReportOf(const std::string& text, bool give_up) {
  StallReporter::Report report;
  report.text = text;
  report.request.set_give_up(give_up);
  report.request.add_waiting()->set_what("allreduce 'a'");
  return report;
}

TEST(StallReporterTest, Tell_WhatTheDaemonDoesNotTake_ComesBack) {
  absl::Notification reached;
  std::vector<std::string> untold;
  {
    StallReporter reporter(
        std::make_unique<ScriptedClient>(reached),
        [&](const StallReporter::Report& report) { untold.push_back(report.text); });
    reporter.Post(ReportOf("first", false));
    reporter.Post(ReportOf("taken", true));
    reporter.Post(ReportOf("second", false));
    reporter.Post({});  // when this is reached, the others have been
    reached.WaitForNotification();
  }
  EXPECT_EQ(untold, (std::vector<std::string>{"first", "second"}));
}

TEST(StallReporterTest, Destruction_WithoutReports_EndsAtOnce) {
  absl::Notification reached;
  StallReporter reporter(std::make_unique<ScriptedClient>(reached), nullptr);
}

}  // namespace
}  // namespace hvd::worker_runtime::session
