#include "collectives/nccl/library.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace hvd {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

const char kComplete[] = "collectives/nccl/libfake_complete.so";
const char kLacking[] = "collectives/nccl/libfake_lacking.so";
const char kOld[] = "collectives/nccl/libfake_old.so";

std::string MessageOf(const absl::StatusOr<GpuLibraries>& libraries) {
  EXPECT_EQ(libraries.status().code(), absl::StatusCode::kUnimplemented) << libraries.status();
  return std::string(libraries.status().message());
}

TEST(LoadGpuLibraries, Complete_EveryFunctionIsThere) {
  const auto libraries = LoadGpuLibraries({kComplete}, {kComplete});
  ASSERT_TRUE(libraries.ok()) << libraries.status();
  EXPECT_EQ(libraries->nccl_version, 22307);
  // The tables hold nothing but pointers.
  for (const auto& [table, bytes] :
       {std::pair(static_cast<const void*>(&libraries->nccl), sizeof(libraries->nccl)),
        std::pair(static_cast<const void*>(&libraries->cuda), sizeof(libraries->cuda))}) {
    for (size_t i = 0; i < bytes / sizeof(void*); ++i) {
      EXPECT_NE(static_cast<void* const*>(table)[i], nullptr) << i;
    }
  }
}

TEST(LoadGpuLibraries, NoSuchFiles_SaysWhatWasTried) {
  EXPECT_THAT(
      MessageOf(LoadGpuLibraries({"/nowhere/libnccl.so.2", "/else/libnccl.so.2"}, {kComplete})),
      AllOf(HasSubstr("NCCL can't be loaded: /nowhere/libnccl.so.2: "),
            HasSubstr("; /else/libnccl.so.2: "), HasSubstr("No such file")));
  EXPECT_THAT(MessageOf(LoadGpuLibraries({kComplete}, {"/nowhere/libcuda.so.1"})),
              HasSubstr("the CUDA driver can't be loaded: /nowhere/libcuda.so.1: "));
}

TEST(LoadGpuLibraries, FirstFileThatCanBeLoadedCounts) {
  EXPECT_TRUE(LoadGpuLibraries({"/nowhere/libnccl.so.2", kComplete}, {kComplete}).ok());
}

TEST(LoadGpuLibraries, MissingFunction_IsNamed) {
  EXPECT_THAT(
      MessageOf(LoadGpuLibraries({kLacking}, {kComplete})),
      AllOf(HasSubstr("libfake_lacking.so has no ncclGetUniqueId, "), HasSubstr("ncclGroupEnd")));
  EXPECT_THAT(MessageOf(LoadGpuLibraries({kComplete}, {kLacking})), HasSubstr("has no cuInit, "));
}

TEST(LoadGpuLibraries, TooOld_NamesBothVersions) {
  EXPECT_THAT(MessageOf(LoadGpuLibraries({kOld}, {kComplete})),
              HasSubstr("is NCCL 2.8.3; at least 2.14.0 is needed"));
}

TEST(InstalledGpuLibraries, EitherLoadsOrSaysWhy) {
  const auto& libraries = InstalledGpuLibraries();
  if (libraries.ok()) {
    EXPECT_GE(libraries->nccl_version, kOldestNccl);
  } else {
    EXPECT_THAT(MessageOf(libraries), HasSubstr("lib"));
  }
}

TEST(NcclFilesNear, LooksBesideThePackage) {
  EXPECT_THAT(NcclFilesNear("/venv/site-packages/horovod/lib/libhvd.so"),
              ElementsAre("libnccl.so.2", "/venv/site-packages/nvidia/nccl/lib/libnccl.so.2"));
  EXPECT_THAT(NcclFilesNear("libhvd.so"), ElementsAre("libnccl.so.2"));
  EXPECT_THAT(NcclFilesNear("/libhvd.so"), ElementsAre("libnccl.so.2"));
}

TEST(NcclVersionText, ReadsAsPeopleWriteIt) {
  EXPECT_EQ(NcclVersionText(22307), "2.23.7");
  EXPECT_EQ(NcclVersionText(21400), "2.14.0");
  EXPECT_EQ(NcclVersionText(2803), "2.8.3");
}

}  // namespace
}  // namespace hvd
