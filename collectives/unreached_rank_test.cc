#include "collectives/unreached_rank.h"

#include "gtest/gtest.h"

namespace hvd::collectives {
namespace {

TEST(UnreachedRankTest, IsAPartOfErrorsThatMeanSilence) {
  const absl::Status silent = WithUnreachedRank(absl::DeadlineExceededError("no answer"), 3);
  EXPECT_EQ(UnreachedRankOf(silent), 3);
  EXPECT_EQ(UnreachedRankOf(WithUnreachedRank(absl::UnavailableError("refused"), 0)), 0);
  EXPECT_EQ(UnreachedRankOf(WithUnreachedRank(absl::PermissionDeniedError("no"), 0)), std::nullopt);
  EXPECT_EQ(UnreachedRankOf(absl::UnavailableError("refused")), std::nullopt);
  EXPECT_EQ(UnreachedRankOf(absl::OkStatus()), std::nullopt);
}

TEST(UnreachedRankTest, WithText_KeepsTheRank) {
  const absl::Status silent = WithUnreachedRank(absl::DeadlineExceededError("no answer"), 3);
  EXPECT_EQ(UnreachedRankOf(WithText(silent, "connecting: no answer")), 3);
  EXPECT_EQ(WithText(silent, "connecting: no answer").message(), "connecting: no answer");
  EXPECT_EQ(WithText(absl::InternalError("a"), "b"), absl::InternalError("b"));
}

}  // namespace
}  // namespace hvd::collectives
