#include "worker_runtime/api/object_seals.h"

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"

namespace hvd::worker_runtime::api {
namespace {

constexpr ObjectOperation kOperation{0, "weights"};

// Two ranks of a world; rank 1 sends.
class ObjectSealsTest : public testing::Test {
 protected:
  std::string Sealed(const ObjectOperation& operation = kOperation, int sender = 1) {
    return absl::StrCat(kObject, sender_.Seal(operation, sender, kObject));
  }
  absl::Status Open(absl::string_view bytes, const ObjectOperation& operation = kOperation,
                    int sender = 1) {
    return receiver_.Open(operation, {{sender, bytes}});
  }

  const std::string kObject = "a pickle";
  ObjectSeals sender_{Epoch(7), "the secret"};
  ObjectSeals receiver_{Epoch(7), "the secret"};
};

TEST_F(ObjectSealsTest, WhatWasSent_IsGood) { EXPECT_EQ(Open(Sealed()), absl::OkStatus()); }

TEST_F(ObjectSealsTest, AnyByteChanged_IsRefused) {
  const std::string sealed = Sealed();
  for (size_t i = 0; i < sealed.size(); ++i) {
    std::string changed = sealed;
    changed[i] ^= 1;
    EXPECT_TRUE(absl::IsPermissionDenied(Open(changed))) << i;
  }
  EXPECT_EQ(Open(sealed), absl::OkStatus());
}

TEST_F(ObjectSealsTest, CutOrEmpty_IsRefused) {
  for (const size_t size : {0, 1, 31, 32, 39}) {
    EXPECT_TRUE(absl::IsPermissionDenied(Open(Sealed().substr(0, size)))) << size;
  }
}

TEST_F(ObjectSealsTest, OfAnotherRank_IsRefusedAndNamed) {
  const absl::Status status = Open(Sealed(kOperation, 2), kOperation, 1);
  EXPECT_TRUE(absl::IsPermissionDenied(status));
  EXPECT_TRUE(absl::StrContains(status.message(), "'weights' is not what rank 1 has sent"));
}

TEST_F(ObjectSealsTest, OfAnotherOperation_IsRefused) {
  EXPECT_TRUE(absl::IsPermissionDenied(Open(Sealed({0, "weights2"}))));
  EXPECT_TRUE(absl::IsPermissionDenied(Open(Sealed({1, "weights"}))));
}

TEST_F(ObjectSealsTest, PlayedAgain_IsRefused) {
  const std::string first = Sealed();
  EXPECT_EQ(Open(first), absl::OkStatus());
  EXPECT_TRUE(absl::IsPermissionDenied(Open(first)));
}

TEST_F(ObjectSealsTest, OutOfTurn_IsRefused) {
  const std::string first = Sealed();
  ASSERT_EQ(sender_.Open(kOperation, {{1, first}}), absl::OkStatus());
  const std::string second = Sealed();
  EXPECT_TRUE(absl::IsPermissionDenied(Open(second)));
  EXPECT_EQ(Open(first), absl::OkStatus());
  EXPECT_EQ(Open(second), absl::OkStatus());
}

TEST_F(ObjectSealsTest, OneThatFailedEverywhere_DoesNotCount) {
  Sealed();  // a rank gets so far alone
  EXPECT_EQ(Open(Sealed()), absl::OkStatus());
}

TEST_F(ObjectSealsTest, OfAnotherEpochOrSecret_IsRefused) {
  for (const auto& [epoch, secret] :
       {std::pair(Epoch(8), "the secret"), std::pair(Epoch(7), "another")}) {
    const ObjectSeals other(epoch, secret);
    EXPECT_TRUE(
        absl::IsPermissionDenied(Open(absl::StrCat(kObject, other.Seal(kOperation, 1, kObject)))));
  }
}

TEST_F(ObjectSealsTest, OneBadAmongMany_IsRefused) {
  const std::string good = Sealed(), bad = Sealed(kOperation, 3);
  EXPECT_TRUE(absl::IsPermissionDenied(receiver_.Open(kOperation, {{1, good}, {2, bad}})));
  EXPECT_EQ(receiver_.Open(kOperation, {{1, good}, {3, bad}}), absl::OkStatus());
}

}  // namespace
}  // namespace hvd::worker_runtime::api
