#include "launcher/cli/environment.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace hvd::launcher::cli {
namespace {

using ::testing::ElementsAre;
using ::testing::Pair;

TEST(WorkerEnvironment, KeepsWorkerVariablesAndDropsLocalOnes) {
  const Environment launcher = {{"PATH", "/bin"},
                                {"BASH_FUNC_module%%", "() { :; }"},
                                {"OLDPWD", "/x"},
                                {"OMP_NUM_THREADS", ""},
                                {"\xff", "x"},
                                {"CUDA_VISIBLE_DEVICES", "1"},
                                {"NV_CUDA_VISIBLE_DEVICES", "1"},
                                {"CUDA_VISIBLE_DEVICES_OLD", "1"},
                                {"_HOROVOD_SECRET_KEY", "s"},
                                {"HOROVOD_AGENT_SOCKET", "@a"},
                                {"HOROVOD_WORKER_WORD", "w"},
                                {"HOROVOD_RANK", "3"}};
  EXPECT_THAT(WorkerEnvironment(launcher, {}, {}),
              ElementsAre(Pair("BASH_FUNC_module%%", "() { :; }"),
                          Pair("CUDA_VISIBLE_DEVICES_OLD", "1"), Pair("HOROVOD_CONTROLLER", "gloo"),
                          Pair("PATH", "/bin"), Pair("PYTHONUNBUFFERED", "1")));
}

TEST(WorkerEnvironment, VariablesOfTorchrun_AreDropped) {
  const Environment launcher = {{"RANK", "1"},
                                {"LOCAL_RANK", "1"},
                                {"MASTER_ADDR", "a"},
                                {"MASTER_PORT", "1"},
                                {"TORCHELASTIC_USE_AGENT_STORE", "True"},
                                {"PATH", "/bin"}};
  const Environment result = WorkerEnvironment(launcher, {}, {});
  EXPECT_EQ(result.size(), 3u) << "PATH and two of Horovod's";
}

TEST(WorkerEnvironment, VariablesOfOtherOperators_AreDropped) {
  const Environment result =
      WorkerEnvironment({{"RANK", "1"}, {"WORLD_SIZE", "2"}, {"MASTER_ADDR", "m"}}, {}, {});
  EXPECT_EQ(result.count("MASTER_ADDR") + result.count("RANK"), 0u);
}

TEST(WorkerEnvironment, InterfaceOfTheJobAround_IsNotPassedOn) {
  Environment launcher = {{"HOROVOD_WORKER_ID", "0"},
                          {"HOROVOD_GLOO_IFACE", "lo"},
                          {"GLOO_SOCKET_IFNAME", "lo"},
                          {"NCCL_SOCKET_IFNAME", "eth1"}};
  Environment result = WorkerEnvironment(launcher, {}, {});
  EXPECT_EQ(result.count("GLOO_SOCKET_IFNAME"), 0u);
  EXPECT_EQ(result.at("NCCL_SOCKET_IFNAME"), "eth1") << "which the user has chosen";
  launcher.erase("HOROVOD_WORKER_ID");
  EXPECT_EQ(WorkerEnvironment(launcher, {}, {}).at("GLOO_SOCKET_IFNAME"), "lo");
}

TEST(WorkerEnvironment, StoreThatTheUserChose_IsPassedOn) {
  const Environment result = WorkerEnvironment({{"MASTER_PORT", "29500"}}, {}, {});
  EXPECT_EQ(result.at("MASTER_PORT"), "29500");
}

TEST(WorkerEnvironment, ExportsWinOverTunablesOverOwn) {
  const Environment launcher = {{"A", "own"}, {"B", "own"}, {"C", "own"}};
  const Environment result =
      WorkerEnvironment(launcher, {{"B", "tunable"}, {"C", "tunable"}}, {{"C", "export"}});
  EXPECT_EQ(result.at("A"), "own");
  EXPECT_EQ(result.at("B"), "tunable");
  EXPECT_EQ(result.at("C"), "export");
}

TEST(WorkerEnvironment, ExportKeepsVariablesThatWouldBeDropped) {
  const Environment result =
      WorkerEnvironment({{"CUDA_VISIBLE_DEVICES", "1"}}, {}, {{"CUDA_VISIBLE_DEVICES", "0"}});
  EXPECT_EQ(result.at("CUDA_VISIBLE_DEVICES"), "0");
}

TEST(ParseExport, TakesValueOrOwnVariable) {
  EXPECT_THAT(*ParseExport("A=b=c", {}), Pair("A", "b=c"));
  EXPECT_THAT(*ParseExport("A=", {}), Pair("A", ""));
  EXPECT_THAT(*ParseExport("A", {{"A", "1"}}), Pair("A", "1"));
}

TEST(ParseExport, RefusesNonsense) {
  EXPECT_EQ(ParseExport("A", {}).status().message(),
            "-x A: no such variable here; -x A=VALUE sets one");
  EXPECT_EQ(ParseExport("=1", {}).status().message(), "-x =1: '' is not a variable's name");
  EXPECT_FALSE(ParseExport("1A=1", {}).ok());
  EXPECT_FALSE(ParseExport("A B=1", {}).ok());
}

}  // namespace
}  // namespace hvd::launcher::cli
