// The header in C and in C++ is the same interface.
#include "gtest/gtest.h"
#include "horovod/rendezvous.h"

extern "C" {
size_t SizeOfOptionsInC(void);
int AbiVersionInC(void);
}

namespace {

TEST(HeaderTest, C_SeesWhatCxxSees) {
  EXPECT_EQ(SizeOfOptionsInC(), sizeof(hvd_rendezvous_job_options));
  EXPECT_EQ(AbiVersionInC(), hvd_rendezvous_abi_version());
}

// Programs that were built with ABI version 1 rely on these: members may only be added at the end.
TEST(HeaderTest, StructuresOfVersion1_KeepTheirLayout) {
  EXPECT_EQ(offsetof(hvd_rendezvous_job_options, np), 16);
  EXPECT_EQ(offsetof(hvd_rendezvous_job_options, start_timeout), 32);
  EXPECT_EQ(offsetof(hvd_rendezvous_job_options, elastic_timeout), 56);
  EXPECT_EQ(offsetof(hvd_rendezvous_job_options, cooldown_longest), 120);
  EXPECT_EQ(offsetof(hvd_rendezvous_job_options, context), 128);
  EXPECT_EQ(offsetof(hvd_rendezvous_job_options, notice), 168);
  EXPECT_EQ(sizeof(hvd_rendezvous_worker), 32);
  EXPECT_EQ(sizeof(hvd_rendezvous_result), 56);
  EXPECT_EQ(offsetof(hvd_rendezvous_exit, last_output), 40);
  EXPECT_EQ(sizeof(hvd_rendezvous_host), 24);
}

}  // namespace
