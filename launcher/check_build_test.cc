#include "launcher/check_build.h"

#include <filesystem>
#include <fstream>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace hvd::launcher {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::StartsWith;

TEST(CheckBuildTable, HasHorovodsShape) {
  const std::string table =
      CheckBuildTable(PythonFacts{"/usr/bin/python3", {{"torch", "2.1"}, {"horovod", "1.0.0"}}});
  EXPECT_THAT(table, HasSubstr("Horovod v1.0.0:\n\nAvailable Frameworks:\n    [ ] TensorFlow"));
  EXPECT_THAT(table, HasSubstr("\n    [X] PyTorch       2.1 in /usr/bin/python3\n"));
  EXPECT_THAT(table, HasSubstr("\n    [ ] MXNet"));
  EXPECT_THAT(table, HasSubstr("\nAvailable Controllers:\n    [ ] MPI"));
  EXPECT_THAT(table, HasSubstr("\n    [X] Gloo\n\nAvailable Tensor Operations:\n    [ ] NCCL"));
  EXPECT_THAT(table, HasSubstr("[ ] DDL"));
  EXPECT_THAT(table, HasSubstr("[ ] CCL"));
}

TEST(CheckBuildTable, SaysWhyPyTorchIsOff) {
  EXPECT_THAT(CheckBuildTable(PythonFacts{"/py", {{"horovod", "1.0.0"}}}),
              HasSubstr("[ ] PyTorch       no torch in /py"));
  EXPECT_THAT(CheckBuildTable(PythonFacts{"/py", {{"torch", "2.1"}}}),
              HasSubstr("[ ] PyTorch       2.1 in /py; but no horovod there"));
  EXPECT_THAT(CheckBuildTable(absl::NotFoundError("no python3")),
              HasSubstr("[ ] PyTorch       no python3"));
}

TEST(CheckBuildTable, SaysWhichPathAFrameworkTakes) {
  const PythonFacts python{"/py",
                           {{"tensorflow", "2.21.0"},
                            {"keras", "3.15.1"},
                            {"jax", "0.4.31"},
                            {"mxnet", "1.9.1"},
                            {"numpy", "1.23.5"},
                            {"horovod", "1.0.0"}},
                           "",
                           "tensorflow"};
  const std::string table = CheckBuildTable(python);
  EXPECT_THAT(table, HasSubstr("[X] TensorFlow    2.21.0 in /py; CPU tensors"));
  EXPECT_THAT(table, HasSubstr("[X] Keras         3.15.1 in /py; on tensorflow; "
                               "KERAS_BACKEND may also be jax\n"));
  EXPECT_THAT(table, HasSubstr("[X] JAX           0.4.31 in /py; CPU arrays"));
  EXPECT_THAT(table, HasSubstr("[X] MXNet         1.9.1 in /py; CPU arrays"));
}

TEST(CheckBuildTable, SaysThatAFrameworkIsTooOld) {
  const PythonFacts python{"/py",
                           {{"tensorflow", "2.12.1"}, {"jax", "0.4.9"}, {"horovod", "1.0.0"}}};
  const std::string table = CheckBuildTable(python);
  EXPECT_THAT(table, HasSubstr("[ ] TensorFlow    2.12.1 in /py; needs 2.13.0 or newer"));
  EXPECT_THAT(table, HasSubstr("[ ] JAX           0.4.9 in /py; needs 0.4.31 or newer"));
}

TEST(CheckBuildTable, SaysWhetherTheBackendOfKerasIsThere) {
  const auto row = [](const char* keras, const char* other, const char* backend) {
    const std::string table = CheckBuildTable(
        PythonFacts{"/py", {{"keras", keras}, {other, "9"}, {"horovod", "1.0.0"}}, "", backend});
    return table.substr(table.find("Keras") - 4);
  };
  EXPECT_THAT(row("3.15.1", "torch", "torch"),
              StartsWith("[X] Keras         3.15.1 in /py; on torch\n"));
  EXPECT_THAT(row("3.15.1", "torch", "tensorflow"),
              StartsWith("[ ] Keras         3.15.1 in /py; can't be used on tensorflow here: set "
                         "KERAS_BACKEND to torch\n"));
  EXPECT_THAT(row("3.15.1", "numpy", "tensorflow"),
              StartsWith("[ ] Keras         3.15.1 in /py; can't be used on tensorflow here: "
                         "install tensorflow, jax or torch\n"));
  EXPECT_THAT(row("3.15.1", "numpy", "numpy"),
              StartsWith("[ ] Keras         3.15.1 in /py; can't be used on numpy"));
  EXPECT_THAT(row("2.13.1", "torch", "torch"),
              StartsWith("[ ] Keras         2.13.1 in /py; can't be used on tensorflow here: "
                         "install tensorflow\n"));
  EXPECT_THAT(row("2.13.1", "tensorflow", "torch"),
              StartsWith("[X] Keras         2.13.1 in /py; on tensorflow\n"));
}

TEST(CheckBuildTable, SaysThatMxnetCantUseThisNumpy) {
  EXPECT_THAT(
      CheckBuildTable(
          PythonFacts{"/py", {{"mxnet", "1.9.1"}, {"numpy", "1.26.4"}, {"horovod", "1.0.0"}}}),
      HasSubstr(
          "[ ] MXNet         1.9.1 in /py; needs a numpy older than 1.24, there is 1.26.4\n"));
  EXPECT_THAT(CheckBuildTable(PythonFacts{"/py", {{"mxnet", "1.9.1"}, {"horovod", "1.0.0"}}}),
              HasSubstr("needs a numpy older than 1.24, there is none\n"));
}

TEST(CheckBuildTable, SaysWhichPythonWasAsked) {
  EXPECT_THAT(
      CheckBuildTable(PythonFacts{"/py", {}}),
      HasSubstr("\n    (asked: /py, the first python3 on the PATH)\n\nAvailable Controllers"));
}

TEST(CheckBuildTable, SaysWhetherThereIsNccl) {
  EXPECT_THAT(
      CheckBuildTable(PythonFacts{"/py", {{"torch", "2.1"}, {"horovod", "1.0.0"}}, "2.23.7"}),
      HasSubstr("[X] NCCL          2.23.7\n"));
  EXPECT_THAT(CheckBuildTable(PythonFacts{"/py", {{"torch", "2.1"}, {"horovod", "1.0.0"}}}),
              HasSubstr("[ ] NCCL          no libnccl.so.2 or no CUDA driver here; GPU tensors"));
  EXPECT_THAT(
      CheckBuildTable(PythonFacts{"/py", {{"torch", "2.1"}}, "2.23.7"}),
      HasSubstr("[ ] NCCL          2.23.7 is there, but only PyTorch uses it: see above\n"));
}

TEST(AskPython, NamesItsInterpreter) {
  auto python = AskPython();
  ASSERT_TRUE(python.ok()) << python.status();
  EXPECT_THAT(python->executable, HasSubstr("python"));
  EXPECT_THAT(python->keras_backend, Not(IsEmpty()));
}

TEST(AskPython, ModulesInTheWorkingDirectory_AreNotThere) {
  const std::filesystem::path before = std::filesystem::current_path();
  const std::filesystem::path shared = std::filesystem::path(testing::TempDir()) / "shared";
  std::filesystem::create_directories(shared / "mxnet");
  std::ofstream(shared / "mxnet" / "__init__.py");
  // Another user's code, which importlib.metadata would import.
  for (const char* name : {"json.py", "email.py", "csv.py"}) {
    std::ofstream(shared / name) << "import posix; posix.mkdir('imported'); posix._exit(1)";
  }
  std::filesystem::current_path(shared);
  auto python = AskPython();
  std::filesystem::current_path(before);
  EXPECT_FALSE(std::filesystem::exists(shared / "imported"));
  ASSERT_TRUE(python.ok()) << python.status();
  EXPECT_EQ(python->versions.count("mxnet"), 0);
}

}  // namespace
}  // namespace hvd::launcher
