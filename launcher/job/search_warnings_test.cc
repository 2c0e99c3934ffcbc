#include "launcher/job/search_warnings.h"

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"

namespace hvd::launcher::job {
namespace {

const absl::Status kFailure = absl::FailedPreconditionError("exit code 1");

class SearchWarningsTest : public testing::Test {
 protected:
  std::string Check(const absl::Status& status, absl::Duration later = absl::Seconds(1)) {
    now_ += later;
    return warnings_.Check(status, now_);
  }

  absl::Time now_ = absl::FromUnixSeconds(100);
  SearchWarnings warnings_;
};

TEST_F(SearchWarningsTest, Check_LastingFailure_IsReportedOnce) {
  EXPECT_EQ(Check(absl::OkStatus()), "");
  EXPECT_EQ(Check(kFailure), "exit code 1; the hosts known so far stay");
  for (int i = 0; i < 1000; ++i) EXPECT_EQ(Check(kFailure), "");
}

TEST_F(SearchWarningsTest, Check_Flapping_IsReportedOncePerKind) {
  int told = 0;
  for (int i = 0; i < 100; ++i) {
    told += Check(kFailure).empty() ? 0 : 1;
    told += Check(absl::OkStatus()).empty() ? 0 : 1;
    told += Check(absl::InvalidArgumentError("rubbish")).empty() ? 0 : 1;
    told += Check(absl::DeadlineExceededError("slow")).empty() ? 0 : 1;
  }
  EXPECT_EQ(told, 3);
}

TEST_F(SearchWarningsTest, Check_OtherText_IsReportedAfterAPause) {
  EXPECT_NE(Check(kFailure), "");
  EXPECT_EQ(Check(absl::FailedPreconditionError("exit code 2")), "");
  EXPECT_EQ(Check(absl::FailedPreconditionError("exit code 2"), SearchWarnings::kPause),
            "exit code 2; the hosts known so far stay");
}

TEST_F(SearchWarningsTest, Check_EverNewInvalidLines_AreReportedRarely) {
  int told = 0;
  for (int i = 0; i < 300; ++i) {
    if (!Check(absl::InvalidArgumentError(absl::StrCat(i))).empty()) ++told;
  }
  EXPECT_EQ(told, 10);
}

TEST_F(SearchWarningsTest, Check_HealthyForLong_IsReportedAndTheNextFailureIsNew) {
  Check(kFailure);
  EXPECT_EQ(Check(absl::OkStatus()), "");
  EXPECT_EQ(Check(absl::OkStatus(), SearchWarnings::kCalm),
            "host discovery has worked again for 1m");
  EXPECT_EQ(Check(absl::OkStatus(), SearchWarnings::kCalm), "");
  EXPECT_NE(Check(kFailure), "");
}

TEST_F(SearchWarningsTest, EverSucceeded_FirstFailure_IsTellable) {
  Check(kFailure);
  EXPECT_FALSE(warnings_.ever_succeeded());
  Check(absl::OkStatus());
  EXPECT_TRUE(warnings_.ever_succeeded());
}

}  // namespace
}  // namespace hvd::launcher::job
