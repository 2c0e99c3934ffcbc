#include "tests/support/status_matchers.h"

#include <memory>

#include "gtest/gtest.h"

namespace hvd {
namespace {

using ::testing::Gt;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::Pointee;

TEST(StatusMatchersTest, IsOk_StatusAndStatusOr_Match) {
  EXPECT_THAT(absl::OkStatus(), IsOk());
  EXPECT_THAT(absl::StatusOr<int>(3), IsOk());
  EXPECT_THAT(absl::AbortedError("x"), Not(IsOk()));
  EXPECT_THAT(absl::StatusOr<int>(absl::AbortedError("x")), Not(IsOk()));
}

TEST(StatusMatchersTest, StatusIs_LooksAtCodeAndMessage) {
  const absl::Status status = absl::NotFoundError("worker 7");
  EXPECT_THAT(status, StatusIs(absl::StatusCode::kNotFound));
  EXPECT_THAT(status, StatusIs(absl::StatusCode::kNotFound, HasSubstr("7")));
  EXPECT_THAT(status, Not(StatusIs(absl::StatusCode::kNotFound, HasSubstr("8"))));
  EXPECT_THAT(status, Not(StatusIs(absl::StatusCode::kAborted, HasSubstr("7"))));
  EXPECT_THAT(absl::StatusOr<int>(status), StatusIs(absl::StatusCode::kNotFound, "worker 7"));
}

TEST(StatusMatchersTest, IsOkAndHolds_LooksAtTheValue) {
  EXPECT_THAT(absl::StatusOr<int>(3), IsOkAndHolds(3));
  EXPECT_THAT(absl::StatusOr<int>(3), IsOkAndHolds(Gt(2)));
  EXPECT_THAT(absl::StatusOr<int>(3), Not(IsOkAndHolds(4)));
  EXPECT_THAT(absl::StatusOr<int>(absl::AbortedError("x")), Not(IsOkAndHolds(3)));
}

TEST(StatusMatchersTest, IsOkAndHolds_ValueThatCannotBeCopied_Works) {
  const absl::StatusOr<std::unique_ptr<int>> value = std::make_unique<int>(5);
  EXPECT_THAT(value, IsOkAndHolds(Pointee(5)));
}

}  // namespace
}  // namespace hvd
