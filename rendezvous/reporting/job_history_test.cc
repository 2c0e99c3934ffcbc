#include "rendezvous/reporting/job_history.h"

#include "gtest/gtest.h"

namespace hvd::rendezvous::reporting {
namespace {

membership::Notice Of(membership::Notice::Kind kind, const std::string& text = "") {
  membership::Notice notice;
  notice.kind = kind;
  notice.text = text;
  return notice;
}

TEST(JobHistoryTest, Observe_CountsByKind) {
  JobHistory history;
  history.Observe(Of(membership::Notice::Kind::kWorkerFailed), absl::UnixEpoch());
  history.Observe(Of(membership::Notice::Kind::kWorkerFailed), absl::UnixEpoch());
  history.Observe(Of(membership::Notice::Kind::kHostLost), absl::UnixEpoch());
  EXPECT_EQ(history.count(membership::Notice::Kind::kWorkerFailed), 2u);
  EXPECT_EQ(history.count(membership::Notice::Kind::kHostLost), 1u);
  EXPECT_EQ(history.count(membership::Notice::Kind::kWorldFormed), 0u);
  EXPECT_FALSE(history.newest_world().has_value());
}

TEST(JobHistoryTest, Observe_KnowsTheNewestWorld) {
  JobHistory history;
  history.Observe(Of(membership::Notice::Kind::kWorldFormed), absl::FromUnixSeconds(1));
  history.Observe(Of(membership::Notice::Kind::kWorldFormed), absl::FromUnixSeconds(5));
  history.Observe(Of(membership::Notice::Kind::kEpochBroken), absl::FromUnixSeconds(9));
  EXPECT_EQ(history.newest_world(), absl::FromUnixSeconds(5));
}

TEST(JobHistoryTest, Recent_IsBounded_AndOldestFirst) {
  JobHistory history;
  for (size_t i = 0; i < JobHistory::kRecent + 3; ++i) {
    history.Observe(Of(membership::Notice::Kind::kWaiting, std::to_string(i)), absl::UnixEpoch());
  }
  ASSERT_EQ(history.recent().size(), JobHistory::kRecent);
  EXPECT_EQ(history.recent().front().notice.text, "3");
}

}  // namespace
}  // namespace hvd::rendezvous::reporting
