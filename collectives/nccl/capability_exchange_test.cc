#include "collectives/nccl/capability_exchange.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace hvd::collectives::nccl {
namespace {

GroupInfo Group(int rank, const std::string& secret = "secret") {
  return {Epoch(7), rank, 3, "", secret};
}

const std::string kId = std::string("id\0|with anything", 17) + std::string(128 - 17, 'x');

Capabilities Able(int rank, int version = 22307) {
  return {version, "", std::string(kGpuBytes, static_cast<char>(rank)), rank == 0 ? kId : ""};
}

std::vector<std::string> Hellos(const Capabilities& last, const std::string& secret = "secret") {
  return {EncodeCapabilities(Group(0), Able(0)), EncodeCapabilities(Group(1), Able(1)),
          EncodeCapabilities(Group(2, secret), last)};
}

TEST(CheckCapabilities, AllCan_GivesRank0sId) {
  const auto id = CheckCapabilities(Group(1), Hellos(Able(2)));
  ASSERT_TRUE(id.ok()) << id.status();
  EXPECT_EQ(std::string(id->internal, sizeof(id->internal)), kId);
}

TEST(CheckCapabilities, OneCannot_SaysWhichAndWhy) {
  for (int rank = 0; rank < 3; ++rank) {
    const absl::Status status =
        CheckCapabilities(Group(rank), Hellos({0, "no | driver", "", ""})).status();
    EXPECT_EQ(status, absl::UnimplementedError("rank 2 can't use NCCL: no | driver"));
  }
}

TEST(CheckCapabilities, OtherVersion_NamesBoth) {
  EXPECT_EQ(CheckCapabilities(Group(0), Hellos(Able(2, 21803))).status(),
            absl::UnimplementedError("rank 2 has NCCL 2.18.3, rank 0 has 2.23.7"));
}

TEST(CheckCapabilities, OneGpuTwice_NamesBothRanks) {
  EXPECT_EQ(CheckCapabilities(Group(2), Hellos(Able(1))).status(),
            absl::UnimplementedError("ranks 1 and 2 use the same GPU, which NCCL 2.30.0 and later "
                                     "take if NCCL_MULTI_RANK_GPU_ENABLE=1 on all ranks"));
}

TEST(CheckCapabilities, OneGpuSharedThoughThereAreMore_AdvisesOneForEachRank) {
  Capabilities last = Able(1);
  last.visible_gpus = 4;
  EXPECT_EQ(CheckCapabilities(Group(2), Hellos(last)).status(),
            absl::UnimplementedError(
                "ranks 1 and 2 use the same GPU, and rank 2 sees 4: torch.cuda.set_device("
                "hvd.local_rank()), before anything uses CUDA, gives each rank its own"));
}

TEST(CheckCapabilities, OneGpuTwice_IsRightIfAllRanksShare) {
  for (int who_does_not = 0; who_does_not <= 3; ++who_does_not) {
    std::vector<std::string> hellos;
    for (int rank = 0; rank < 3; ++rank) {
      Capabilities hello = Able(rank);
      hello.gpu = std::string(kGpuBytes, static_cast<char>(rank / 2));
      hello.shares_gpus = rank != who_does_not;
      hellos.push_back(EncodeCapabilities(Group(rank), hello));
    }
    EXPECT_EQ(CheckCapabilities(Group(0), hellos).ok(), who_does_not == 3) << who_does_not;
  }
}

TEST(CheckCapabilities, Stranger_IsRefused) {
  EXPECT_EQ(CheckCapabilities(Group(0), Hellos(Able(2), "guess")).status(),
            absl::PermissionDeniedError("rank 2 does not know this epoch's secret"));
}

TEST(CheckCapabilities, HelloOfAnotherRankOrEpochOrChanged_IsRefused) {
  std::vector<std::string> hellos = Hellos(Able(2));
  std::swap(hellos[1], hellos[2]);
  EXPECT_TRUE(absl::IsPermissionDenied(CheckCapabilities(Group(0), hellos).status()));
  GroupInfo later = Group(0);
  later.epoch = Epoch(8);
  EXPECT_TRUE(absl::IsPermissionDenied(CheckCapabilities(later, Hellos(Able(2))).status()));
  for (const size_t at : {0u, 31u, 32u, 40u}) {
    hellos = Hellos(Able(2));
    hellos[0][at] ^= 1;
    EXPECT_TRUE(absl::IsPermissionDenied(CheckCapabilities(Group(1), hellos).status())) << at;
  }
  hellos[0] = "short";
  EXPECT_TRUE(absl::IsPermissionDenied(CheckCapabilities(Group(1), hellos).status()));
}

TEST(CheckCapabilities, NoId_IsABug) {
  std::vector<std::string> hellos = Hellos(Able(2));
  hellos[0] = EncodeCapabilities(Group(0), {22307, "", std::string(kGpuBytes, 'x'), "short"});
  EXPECT_EQ(CheckCapabilities(Group(1), hellos).status().code(), absl::StatusCode::kInternal);
}

}  // namespace
}  // namespace hvd::collectives::nccl
