#include "launcher/check_build.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace hvd::launcher {
namespace {

using ::testing::HasSubstr;

TEST(CheckBuildTable, HasHorovodsShape) {
  const std::string table = CheckBuildTable(PythonFacts{"/usr/bin/python3", "2.1", "1.0.0"});
  EXPECT_THAT(table, HasSubstr("Horovod v1.0.0:\n\nAvailable Frameworks:\n    [ ] TensorFlow"));
  EXPECT_THAT(table, HasSubstr("\n    [X] PyTorch       2.1 in /usr/bin/python3\n"));
  EXPECT_THAT(table, HasSubstr("\n    [ ] MXNet"));
  EXPECT_THAT(table, HasSubstr("\nAvailable Controllers:\n    [ ] MPI"));
  EXPECT_THAT(table, HasSubstr("\n    [X] Gloo\n\nAvailable Tensor Operations:\n    [ ] NCCL"));
  EXPECT_THAT(table, HasSubstr("[ ] DDL"));
  EXPECT_THAT(table, HasSubstr("[ ] CCL"));
}

TEST(CheckBuildTable, SaysWhyPyTorchIsOff) {
  EXPECT_THAT(CheckBuildTable(PythonFacts{"/py", "", "1.0.0"}),
              HasSubstr("[ ] PyTorch       no torch in /py"));
  EXPECT_THAT(CheckBuildTable(PythonFacts{"/py", "2.1", ""}),
              HasSubstr("[ ] PyTorch       2.1 in /py; but no horovod there"));
  EXPECT_THAT(CheckBuildTable(absl::NotFoundError("no python3")),
              HasSubstr("[ ] PyTorch       no python3"));
}

TEST(CheckBuildTable, SaysWhetherThereIsNccl) {
  EXPECT_THAT(CheckBuildTable(PythonFacts{"/py", "2.1", "1.0.0", "2.23.7"}),
              HasSubstr("[X] NCCL          2.23.7\n"));
  EXPECT_THAT(CheckBuildTable(PythonFacts{"/py", "2.1", "1.0.0", ""}),
              HasSubstr("[ ] NCCL          no libnccl.so.2 or no CUDA driver here; GPU tensors"));
  EXPECT_THAT(CheckBuildTable(PythonFacts{"/py", "2.1", "", "2.23.7"}), HasSubstr("[ ] NCCL"));
}

TEST(AskPython, NamesItsInterpreter) {
  auto python = AskPython();
  ASSERT_TRUE(python.ok()) << python.status();
  EXPECT_THAT(python->executable, HasSubstr("python"));
}

}  // namespace
}  // namespace hvd::launcher
