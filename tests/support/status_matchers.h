// gMock matchers for absl::Status and absl::StatusOr:
//   EXPECT_THAT(status, IsOk());
//   EXPECT_THAT(status_or, IsOkAndHolds(Gt(3)));
//   EXPECT_THAT(status, StatusIs(absl::StatusCode::kNotFound, HasSubstr("worker 7")));
#ifndef TESTS_SUPPORT_STATUS_MATCHERS_H_
#define TESTS_SUPPORT_STATUS_MATCHERS_H_

#include <string>
#include <type_traits>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "gmock/gmock.h"

namespace hvd {
namespace status_matchers_internal {

inline const absl::Status& GetStatus(const absl::Status& status) { return status; }
template <typename T>
const absl::Status& GetStatus(const absl::StatusOr<T>& status_or) {
  return status_or.status();
}

template <typename StatusOrType>
class IsOkAndHoldsImpl : public testing::MatcherInterface<StatusOrType> {
 public:
  using Value = typename std::remove_reference_t<StatusOrType>::value_type;

  template <typename Inner>
  explicit IsOkAndHoldsImpl(Inner&& inner)
      : inner_(testing::SafeMatcherCast<const Value&>(std::forward<Inner>(inner))) {}

  void DescribeTo(std::ostream* out) const override {
    *out << "is OK and has a value that ";
    inner_.DescribeTo(out);
  }
  bool MatchAndExplain(StatusOrType actual, testing::MatchResultListener* listener) const override {
    if (!actual.ok()) {
      *listener << "which has status " << actual.status();
      return false;
    }
    return inner_.MatchAndExplain(*actual, listener);
  }

 private:
  const testing::Matcher<const Value&> inner_;
};

template <typename Inner>
class IsOkAndHoldsMatcher {
 public:
  explicit IsOkAndHoldsMatcher(Inner inner) : inner_(std::move(inner)) {}

  template <typename StatusOrType>
  operator testing::Matcher<StatusOrType>() const {  // NOLINT: implicit, as matchers are
    return testing::Matcher<StatusOrType>(new IsOkAndHoldsImpl<const StatusOrType&>(inner_));
  }

 private:
  const Inner inner_;
};

}  // namespace status_matchers_internal

MATCHER(IsOk, negation ? "is not OK" : "is OK") {
  const absl::Status& status = status_matchers_internal::GetStatus(arg);
  *result_listener << "which has status " << status;
  return status.ok();
}

MATCHER_P2(StatusIs, code, message,
           "has status " + absl::StatusCodeToString(code) + " with a message that " +
               testing::DescribeMatcher<std::string>(message, negation)) {
  const absl::Status& status = status_matchers_internal::GetStatus(arg);
  *result_listener << "which has status " << status;
  return status.code() == code &&
         testing::ExplainMatchResult(message, std::string(status.message()), result_listener);
}

MATCHER_P(StatusIs, code, "has status " + absl::StatusCodeToString(code)) {
  const absl::Status& status = status_matchers_internal::GetStatus(arg);
  *result_listener << "which has status " << status;
  return status.code() == code;
}

template <typename Inner>
status_matchers_internal::IsOkAndHoldsMatcher<std::decay_t<Inner>> IsOkAndHolds(Inner&& inner) {
  return status_matchers_internal::IsOkAndHoldsMatcher<std::decay_t<Inner>>(
      std::forward<Inner>(inner));
}

}  // namespace hvd

#endif  // TESTS_SUPPORT_STATUS_MATCHERS_H_
