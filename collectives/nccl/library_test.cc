#include "collectives/nccl/library.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace hvd::collectives::nccl {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

const char kComplete[] = "collectives/nccl/libfake_complete.so";
const char kLacking[] = "collectives/nccl/libfake_lacking.so";
const char kOld[] = "collectives/nccl/libfake_old.so";

std::string MessageOf(const absl::Status& status) {
  EXPECT_EQ(status.code(), absl::StatusCode::kUnimplemented) << status;
  return std::string(status.message());
}

// The reason for an absent NCCL if there is a driver.
std::string NcclMessageOf(const absl::StatusOr<GpuLibraries>& libraries) {
  EXPECT_TRUE(libraries.ok()) << libraries.status();
  EXPECT_EQ(libraries->nccl_version, 0);
  return MessageOf(libraries->nccl_status);
}

TEST(LoadGpuLibraries, Complete_EveryFunctionIsThere) {
  const auto libraries = LoadGpuLibraries({kComplete}, {kComplete});
  ASSERT_TRUE(libraries.ok()) << libraries.status();
  EXPECT_EQ(libraries->nccl_status, absl::OkStatus());
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

TEST(LoadGpuLibraries, NoSuchFiles_NamesThePaths) {
  EXPECT_THAT(
      NcclMessageOf(LoadGpuLibraries({"/nowhere/libnccl.so.2", "/else/libnccl.so.2"}, {kComplete})),
      AllOf(HasSubstr("NCCL can't be loaded: /nowhere/libnccl.so.2: "),
            HasSubstr("; /else/libnccl.so.2: "), HasSubstr("No such file")));
  EXPECT_THAT(MessageOf(LoadGpuLibraries({kComplete}, {"/nowhere/libcuda.so.1"}).status()),
              HasSubstr("the CUDA driver can't be loaded: /nowhere/libcuda.so.1: "));
}

TEST(LoadGpuLibraries, FirstFileThatCanBeLoadedCounts) {
  const auto libraries = LoadGpuLibraries({"/nowhere/libnccl.so.2", kComplete}, {kComplete});
  ASSERT_TRUE(libraries.ok()) << libraries.status();
  EXPECT_EQ(libraries->nccl_status, absl::OkStatus());
}

TEST(LoadGpuLibraries, MissingFunction_IsNamed) {
  EXPECT_THAT(
      NcclMessageOf(LoadGpuLibraries({kLacking}, {kComplete})),
      AllOf(HasSubstr("libfake_lacking.so has no ncclGetUniqueId, "), HasSubstr("ncclGroupEnd")));
  EXPECT_THAT(MessageOf(LoadGpuLibraries({kComplete}, {kLacking}).status()),
              HasSubstr("has no cuInit, "));
}

TEST(LoadGpuLibraries, TooOld_NamesBothVersions) {
  EXPECT_THAT(NcclMessageOf(LoadGpuLibraries({kOld}, {kComplete})),
              HasSubstr("is NCCL 2.8.3; at least 2.14.0 is needed"));
}

TEST(InstalledGpuLibraries, EitherLoadsOrSaysWhy) {
  const auto& libraries = InstalledGpuLibraries();
  if (libraries.ok()) {
    EXPECT_TRUE(libraries->nccl_version == 0 || libraries->nccl_version >= kOldestNccl);
  } else {
    EXPECT_THAT(MessageOf(libraries.status()), HasSubstr("lib"));
  }
}

TEST(NcclFilesNear, LooksBesideThePackage) {
  EXPECT_THAT(NcclFilesNear("/venv/site-packages/horovod/lib/libhvd.so"),
              ElementsAre("libnccl.so.2", "/venv/site-packages/nvidia/nccl/lib/libnccl.so.2"));
  EXPECT_THAT(NcclFilesNear("libhvd.so"), ElementsAre("libnccl.so.2"));
  // The package may be elsewhere, on PYTHONPATH, and the wheel beside a framework.
  const std::vector<std::string> loaded = {"", "/lib/libc.so.6", "/a/site-packages/jaxlib/xla.so",
                                           "/a/site-packages/numpy/core.so",
                                           "/usr/lib/python3/dist-packages/x.so"};
  EXPECT_THAT(NcclFilesNear("/src/horovod/lib/libhvd.so", loaded),
              ElementsAre("libnccl.so.2", "/src/nvidia/nccl/lib/libnccl.so.2",
                          "/a/site-packages/nvidia/nccl/lib/libnccl.so.2",
                          "/usr/lib/python3/dist-packages/nvidia/nccl/lib/libnccl.so.2"));
  EXPECT_THAT(NcclFilesNear("/libhvd.so"), ElementsAre("libnccl.so.2"));
}

TEST(NcclVersionText, ReadsAsPeopleWriteIt) {
  EXPECT_EQ(NcclVersionText(22307), "2.23.7");
  EXPECT_EQ(NcclVersionText(21400), "2.14.0");
  EXPECT_EQ(NcclVersionText(2803), "2.8.3");
}

}  // namespace
}  // namespace hvd::collectives::nccl
