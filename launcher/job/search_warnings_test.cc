#include "launcher/job/search_warnings.h"

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"

namespace hvd::launcher::job {
namespace {

const absl::Status kFailure = absl::FailedPreconditionError("exit code 1");

class SearchWarningsTest : public testing::Test {
 protected:
  std::string Judge(const absl::Status& status, absl::Duration later = absl::Seconds(1)) {
    now_ += later;
    return warnings_.Judge(status, now_);
  }

  absl::Time now_ = absl::FromUnixSeconds(100);
  SearchWarnings warnings_;
};

TEST_F(SearchWarningsTest, Judge_LastingFailure_IsToldOnce) {
  EXPECT_EQ(Judge(absl::OkStatus()), "");
  EXPECT_EQ(Judge(kFailure), "exit code 1; the hosts known so far stay");
  for (int i = 0; i < 1000; ++i) EXPECT_EQ(Judge(kFailure), "");
}

TEST_F(SearchWarningsTest, Judge_Flapping_IsToldOncePerKind) {
  int told = 0;
  for (int i = 0; i < 100; ++i) {
    told += Judge(kFailure).empty() ? 0 : 1;
    told += Judge(absl::OkStatus()).empty() ? 0 : 1;
    told += Judge(absl::InvalidArgumentError("rubbish")).empty() ? 0 : 1;
    told += Judge(absl::DeadlineExceededError("slow")).empty() ? 0 : 1;
  }
  EXPECT_EQ(told, 3);
}

TEST_F(SearchWarningsTest, Judge_OtherText_IsToldAfterAPause) {
  EXPECT_NE(Judge(kFailure), "");
  EXPECT_EQ(Judge(absl::FailedPreconditionError("exit code 2")), "");
  EXPECT_EQ(Judge(absl::FailedPreconditionError("exit code 2"), SearchWarnings::kPause),
            "exit code 2; the hosts known so far stay");
}

TEST_F(SearchWarningsTest, Judge_EndlessNewRubbish_IsToldRarely) {
  int told = 0;
  for (int i = 0; i < 300; ++i) {
    if (!Judge(absl::InvalidArgumentError(absl::StrCat(i))).empty()) ++told;
  }
  EXPECT_EQ(told, 10);
}

TEST_F(SearchWarningsTest, Judge_WellForLong_IsToldAndTheNextFailureIsNew) {
  Judge(kFailure);
  EXPECT_EQ(Judge(absl::OkStatus()), "");
  EXPECT_EQ(Judge(absl::OkStatus(), SearchWarnings::kCalm),
            "host discovery has worked again for 1m");
  EXPECT_EQ(Judge(absl::OkStatus(), SearchWarnings::kCalm), "");
  EXPECT_NE(Judge(kFailure), "");
}

TEST_F(SearchWarningsTest, EverSucceeded_FirstFailure_IsTellable) {
  Judge(kFailure);
  EXPECT_FALSE(warnings_.ever_succeeded());
  Judge(absl::OkStatus());
  EXPECT_TRUE(warnings_.ever_succeeded());
}

}  // namespace
}  // namespace hvd::launcher::job
