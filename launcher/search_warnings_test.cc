#include "launcher/search_warnings.h"

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"

namespace hvd {
namespace {

const absl::Status kFailure = absl::FailedPreconditionError("exit code 1");

TEST(SearchWarnings, Judge_Failure_IsToldOnceUntilItRecovers) {
  SearchWarnings warnings;
  EXPECT_EQ(warnings.Judge(absl::OkStatus()), "");
  EXPECT_EQ(warnings.Judge(kFailure), "exit code 1; the hosts known so far stay");
  EXPECT_EQ(warnings.Judge(absl::FailedPreconditionError("exit code 2")), "");
  EXPECT_EQ(warnings.Judge(absl::OkStatus()), "");
  EXPECT_NE(warnings.Judge(kFailure), "");
}

TEST(SearchWarnings, Judge_Rubbish_IsToldOncePerText) {
  SearchWarnings warnings;
  EXPECT_NE(warnings.Judge(absl::InvalidArgumentError("one")), "");
  EXPECT_EQ(warnings.Judge(absl::InvalidArgumentError("one")), "");
  EXPECT_NE(warnings.Judge(absl::InvalidArgumentError("two")), "");
  EXPECT_EQ(warnings.Judge(absl::OkStatus()), "");
  EXPECT_EQ(warnings.Judge(absl::InvalidArgumentError("one")), "");
}

TEST(SearchWarnings, Judge_EndlessNewRubbish_IsToldABoundedNumberOfTimes) {
  SearchWarnings warnings;
  int told = 0;
  for (int i = 0; i < 1000; ++i) {
    if (!warnings.Judge(absl::InvalidArgumentError(absl::StrCat(i))).empty()) ++told;
  }
  EXPECT_EQ(told, 20);
}

TEST(SearchWarnings, EverSucceeded_FirstFailure_IsTellable) {
  SearchWarnings warnings;
  warnings.Judge(kFailure);
  EXPECT_FALSE(warnings.ever_succeeded());
  warnings.Judge(absl::OkStatus());
  EXPECT_TRUE(warnings.ever_succeeded());
}

}  // namespace
}  // namespace hvd
